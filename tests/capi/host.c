//===- host.c - A tool that loads plug-ins, as GCC does -------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Loads a plug-in, runs it with the remaining arguments, and unloads it. The
/// program fails if a thread of the library still runs afterwards.
///
//===----------------------------------------------------------------------===//

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef int PluginMain(int, char **);

/* Counts the threads of this process whose names begin with "mlbridge". */
static int countThreads(void) {
  DIR *Tasks = opendir("/proc/self/task");
  if (!Tasks)
    return -1;
  int Count = 0;
  for (struct dirent *Task; (Task = readdir(Tasks));) {
    char Path[300], Name[32] = "";
    snprintf(Path, sizeof(Path), "/proc/self/task/%s/comm", Task->d_name);
    FILE *File = fopen(Path, "r");
    if (!File)
      continue;
    if (fgets(Name, sizeof(Name), File) && strncmp(Name, "mlbridge", 8) == 0)
      ++Count;
    fclose(File);
  }
  closedir(Tasks);
  return Count;
}

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
  // Standard C has no cast from a data pointer to a function pointer, so copy
  // the bytes.
  PluginMain *Main;
  memcpy((void *)&Main, (const void *)&Symbol, sizeof(Main));
  int Status = Main(argc - 1, argv + 1);
  dlclose(Plugin);
  /* A joined thread stays listed for a moment. */
  for (int Wait = 0; Wait < 1000 && countThreads() != 0; ++Wait)
    usleep(1000);
  if (countThreads() != 0) {
    fprintf(stderr, "host: the plug-in has left a thread behind\n");
    return 3;
  }
  return Status;
}
