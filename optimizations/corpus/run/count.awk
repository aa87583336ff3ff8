
{ for (i = 1; i <= NF; i++) { if ($i ~ /^[0-9]+$/) sum += $i; else count[$i]++ } }
/th+e|an[dy]/ { hits++; gsub(/e/, "E"); size += length($0) }
{ line = substr($0, 1, 20); n += split(line, parts, /[aeiou]/); up = toupper(line) }
END {
  n2 = asorti(count, keys)
  for (i = 1; i <= n2; i++)
    check = (check * 31 + count[keys[i]] * length(keys[i])) % 1000003
  printf "%d %d %d %d %d %s\n", sum, hits, size, n, check, keys[1]
}
