//===- Loader.cpp - Loads the plug-in if it fits the running gcc ----------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// gcc loads this file. The decisions work only with the gcc version for which
/// they were built, and another gcc cannot even load them. So this file
/// compares the versions before it loads the decisions. Of gcc's functions, it
/// uses only the version check.
///
//===----------------------------------------------------------------------===//

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>

// Do not sort these headers. gcc's headers do not include the headers that they
// need.
#include <gcc-plugin.h>

#include <plugin-version.h>

#include "Loader.h"

// gcc refuses plug-ins without this symbol.
int plugin_is_GPL_compatible;

/// Prints a warning. gcc's warning() is not used, because -Werror would turn it
/// into an error.
static int leaveToGcc(const std::string &Why) {
  fprintf(stderr, "mlbridge: warning: %s; gcc decides\n", Why.c_str());
  return 0;
}

int plugin_init(plugin_name_args *Info, plugin_gcc_version *Version) {
  if (!plugin_default_version_check(Version, &gcc_version))
    return leaveToGcc(
        std::string("built for gcc ") + gcc_version.basever + " of " +
        gcc_version.datestamp + ", found gcc " + Version->basever + " of " +
        Version->datestamp +
        ": build it for this gcc with scripts/build-gcc-plugin GCC DIR");
  // A symbolic link to this file need not be beside the decisions.
  char Real[PATH_MAX];
  std::string Path = realpath(Info->full_name, Real) ? Real : Info->full_name;
  Path = Path.substr(0, Path.rfind('/') + 1) + MLBRIDGE_GCC_DECISIONS;
  void *Library = dlopen(Path.c_str(), RTLD_NOW | RTLD_LOCAL);
  using StartFunction = int (*)(plugin_name_args *);
  auto Start = Library ? reinterpret_cast<StartFunction>(
                             dlsym(Library, "mlbridgeStartDecisions"))
                       : nullptr;
  return Start ? Start(Info) : leaveToGcc(dlerror());
}
