# Sourced by the scripts that take files from Debian's archive without
# installing them. The machine's own apt is neither changed nor asked for root:
# configuration, lists and downloads have a place of their own. apt checks every
# file against Debian's signed index.

# private_apt_setup DIR TYPE [SUITE]: makes DIR anew, for the archive that this
# machine already uses. It is asked for TYPE (deb or deb-src), of the release of
# this machine or, if there is one, of SUITE. Of a release's suites the first
# alone is looked at, which has every package whole.
private_apt_setup() {
  local type=$2 own suite file
  private_apt=$1
  rm -rf "$private_apt"
  mkdir -p "$private_apt"/{sources,lists/partial,cache/archives/partial,downloads}
  # shellcheck source=/dev/null
  own=$(. /etc/os-release && echo "$VERSION_CODENAME")
  suite=${3:-$own}
  for file in /etc/apt/sources.list.d/*.sources; do
    if [[ -e $file ]]; then
      awk -v RS= -v own="$own" -v suite="$suite" -v type="$type" '
        $0 ~ "(^|\n)Suites:[^\n]*[ \t]" own "([ \t\n]|$)" {
          gsub(/(^|\n)Types:[^\n]*/, "\nTypes: " type)
          gsub(/(^|\n)Suites:[^\n]*/, "\nSuites: " suite)
          print $0 "\n"
        }' "$file" >>"$private_apt/sources/release.sources"
    fi
  done
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    if [[ -e $file ]]; then
      sed --quiet --regexp-extended \
        "s/^deb[ \t]+((\[[^]]*\][ \t]+)?[^ \t]+[ \t]+)${own}([ \t])/$type \1$suite\3/p" \
        "$file" >>"$private_apt/sources/release.list"
    fi
  done
  if [[ ! -s $private_apt/sources/release.sources &&
    ! -s $private_apt/sources/release.list ]]; then
    echo "apt has no source for the suite $own" >&2
    return 1
  fi
}

# apt-get as private_apt_setup has set it up.
private_apt_get() {
  apt-get -qq -o APT::Sandbox::User="" -o Acquire::Retries=3 \
    -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30 \
    -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$private_apt/sources" \
    -o Dir::State::Lists="$private_apt/lists" -o Dir::Cache="$private_apt/cache" "$@"
}
