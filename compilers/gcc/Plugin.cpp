//===- Plugin.cpp - Starts the decisions that have a model ----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Starts the decisions. Loader.cpp loads this part after a check of gcc's
/// version, because this part needs functions of exactly that gcc.
///
//===----------------------------------------------------------------------===//

// Do not sort these headers. gcc's headers do not include the headers that they
// need.
#include <gcc-plugin.h>

#include <diagnostic-core.h>
#include <tree-pass.h>

#include "Decisions.h"
#include "Loader.h"

namespace {

struct Decision {
  const char *Name;
  /// The environment variable that contains the spec if no argument does. It is
  /// needed because gcc shortens arguments whose value contains `=`.
  const char *Variable;
  void (*Start)(const char *Plugin, Model &Asked);
};

constexpr Decision Decisions[] = {
    {"inline", "MLBRIDGE_GCC_INLINE", decideInlining},
    {"unroll", "MLBRIDGE_GCC_UNROLL", decideUnrolling},
    {"flags", "MLBRIDGE_GCC_FLAGS", decideFlags},
    {"gates", "MLBRIDGE_GCC_GATES", decideGates},
};

} // namespace

static const Decision *find(const char *Name) {
  for (const Decision &One : Decisions)
    if (strcmp(One.Name, Name) == 0)
      return &One;
  return nullptr;
}

static const char *specOf(const Decision &One, const plugin_name_args &Info) {
  const char *Spec = getenv(One.Variable);
  for (int I = 0; I < Info.argc; ++I)
    if (strcmp(Info.argv[I].key, One.Name) == 0)
      Spec = Info.argv[I].value;
  return Spec;
}

static void close(void *, void *Asked) { static_cast<Model *>(Asked)->close(); }

int mlbridgeStartDecisions(plugin_name_args *Info) {
  for (int I = 0; I < Info->argc; ++I) {
    const plugin_argument &Argument = Info->argv[I];
    const Decision *Named = find(Argument.key);
    if (Named && Argument.value) {
      if (!strchr(Argument.value, '='))
        continue;
      error(
          "mlbridge: %s: gcc allows no %<=%> in the value of an argument; set "
          "the environment variable %s to the spec instead",
          Argument.key, Named->Variable);
      return 1;
    }
    error("mlbridge: expected an argument inline=SPEC, unroll=SPEC, flags=SPEC "
          "or gates=SPEC, found %qs",
          Argument.key);
    return 1;
  }
  for (const Decision &One : Decisions) {
    const char *Spec = specOf(One, *Info);
    if (!Spec)
      continue;
    Model *Asked = Model::open(One.Name, Spec);
    if (!Asked)
      return 1;
    One.Start(Info->base_name, *Asked);
    register_callback(Info->base_name, PLUGIN_FINISH, close, Asked);
  }
  return 0;
}
