
group_by(.group) | map({group: .[0].group, count: length, sum: (map(.price) | add),
  tags: (map(.tags[]) | unique | length), longest: (map(.text | length) | max),
  first: (min_by(.price) | .tags | join("-") | ascii_upcase),
  open: (map(select(.open)) | length)}) | sort_by(-.sum, .group)
  | . as $all | (.[:5], (map(.count) | add), ([.[] | to_entries[] | .key] | length),
  ($all | reduce .[] as $g (0; . + ($g.sum | floor) % 97)), (.[0] | tojson | fromjson),
  ([limit(20; .[] | .first | explode | implode | split("A") | length)] | @csv))
