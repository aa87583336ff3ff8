
fibonacci() { if [ $1 -lt 2 ]; then r=$1; else
  local a; fibonacci $(($1 - 1)); a=$r; set -- $1 $a; fibonacci $(($1 - 2))
  r=$(($r + $2)); fi; }
sieve() { local i=2 j
  while [ $i -le $1 ]; do eval "p=\${s_$i:-1}"
    if [ $p = 1 ]; then found="$found $i"; j=$((i * i))
      while [ $j -le $1 ]; do eval s_$j=0; j=$((j + i)); done; fi
    i=$((i + 1)); done; }
fibonacci 18; echo $r
sieve 30000; set -- $found; echo $#
for round in 1 2 3 4 5 6 7 8; do for w in $found; do
  case $w in *1?7) x=$((x + w));; [2-5]*[!3]) y=${w%?}${w#?};; 9*|8*) z="$z${w##*8}";;
  *) t=$((t ^ w << 2));; esac
done; done
echo $x $y $t ${#z}
while IFS=' ' read -r a b c; do
  case "$a$b" in *th*) n=$((n + 1)); v="${a:-none} ${c%%[0-9]*}";; esac
done <in
echo "$n <$v>"
for i in 1 2 3; do cat <<END; done | { while read -r l; do echo "$l|$x"; done; }
line $i of ${n} `echo $((i * 7)) | { read q; echo $q; }`
END
trap 'echo end $?' EXIT; (exit 3)
