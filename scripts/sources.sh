# Sourced by the scripts that look at the project's own sources.

# The folders with C++ in them; build trees and .venv are never among them.
cpp_folders() {
  local folder
  for folder in include lib extensions python compilers benchmarks examples tests; do
    if [[ -d $folder ]]; then echo "$folder"; fi
  done
}

# Prints the C and C++ sources, each ended by a NUL.
cpp_sources() {
  mapfile -t folders < <(cpp_folders)
  find "${folders[@]}" -path '*/templates/*' -prune -o -type f \( -name '*.[ch]' -o -name '*.cpp' \) -print0 | sort --zero-terminated
}

# The folders and files with Python in them.
python_folders() {
  local folder
  for folder in python lib compilers benchmarks optimizations docs/python examples tests scripts/test; do
    if [[ -e $folder ]]; then echo "$folder"; fi
  done
}
