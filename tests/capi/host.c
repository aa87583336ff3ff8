//===- host.c - A tool that loads plug-ins, as GCC does
//---------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Loads a plug-in, runs it with the rest of the arguments, and unloads it.
///
//===----------------------------------------------------------------------===//

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef int PluginMain(int, char **);

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: %s PLUGIN ARGUMENT...\n", argv[0]);
    return 2;
  }
  void *Plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  void *Symbol = Plugin ? dlsym(Plugin, "pluginMain") : NULL;
  if (!Symbol) {
    fprintf(stderr, "host: %s\n", dlerror());
    return 2;
  }
  // C has no cast from a pointer to data to one to a function.
  PluginMain *Main;
  memcpy((void *)&Main, (const void *)&Symbol, sizeof(Main));
  int Status = Main(argc - 1, argv + 1);
  dlclose(Plugin);
  return Status;
}
