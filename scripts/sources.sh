# Sourced by scripts that process the project's own sources.

# Prints the folders with C++ sources, without build trees and .venv.
cpp_folders() {
  local folder
  for folder in include lib extensions python compilers benchmarks examples tests; do
    if [[ -d $folder ]]; then echo "$folder"; fi
  done
}

# Prints the C and C++ sources, each followed by a NUL.
cpp_sources() {
  mapfile -t folders < <(cpp_folders)
  find "${folders[@]}" -path '*/templates/*' -prune -o -type f \( -name '*.[ch]' -o -name '*.cpp' \) -print0 | sort --zero-terminated
}

# Prints the folders and files with Python sources.
python_folders() {
  local folder
  for folder in python lib compilers benchmarks optimizations docs models examples tests scripts/test \
    scripts/count-integration-lines; do
    if [[ -e $folder ]]; then echo "$folder"; fi
  done
}
