# Sourced by scripts that fetch files from Debian's archive without installing them.
# Root is not needed, and the machine's apt does not change, because configuration,
# lists and downloads are in a separate folder. apt checks every file against Debian's
# signed index.

# private_apt_setup DIR TYPE [SUITE] recreates DIR for the archive that this machine
# uses. TYPE is the kind of packages, deb or deb-src. The default of SUITE is this
# machine's release. Only the release's main suite is used, which has every package.
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

# Runs apt-get in the folder of private_apt_setup.
private_apt_get() {
  apt-get -qq -o APT::Sandbox::User="" -o Acquire::Retries=3 \
    -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30 \
    -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$private_apt/sources" \
    -o Dir::State::Lists="$private_apt/lists" -o Dir::Cache="$private_apt/cache" "$@"
}
