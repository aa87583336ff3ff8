//===- CallFeatures.h - Further features of calls ---------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Describes a call by features that LLVM's ML inliner lacks: linkage, exact
/// numbers of uses, and the number of files that emit the callee. They
/// determine how inlining changes the linked program. Models receive them with
/// -mlbridge-inliner-include-linkage.
///
//===----------------------------------------------------------------------===//

#ifndef MLBRIDGE_LLVM_INLINER_CALLFEATURES_H
#define MLBRIDGE_LLVM_INLINER_CALLFEATURES_H

#include "MLCompilerBridge/Error.h"

#include "llvm/ADT/StringMap.h"

#include <array>
#include <cstdint>

namespace llvm {
class CallBase;
class Function;
} // namespace llvm

namespace MLBridge {

/// The features, each int64_t[1]. If other files can see a callee, LLVM's
/// feature `callee_users` is 1 higher than the callee's number of uses. The
/// features `callee_uses` and `caller_uses` are the exact numbers of uses.
#define MLBRIDGE_CALL_FEATURES(M)                                              \
  /* 1 if the linker merges copies of the callee (linkonce_odr, ...). */       \
  M(CalleeIsMerged, "callee_is_merged")                                        \
  /* 1 if no other file can use the callee (internal, private). */             \
  M(CalleeIsLocal, "callee_is_local")                                          \
  M(CallerIsMerged, "caller_is_merged")                                        \
  M(CallerIsLocal, "caller_is_local")                                          \
  /* Uses in this module, including those that are not calls. */               \
  M(CalleeUses, "callee_uses")                                                 \
  M(CallerUses, "caller_uses")                                                 \
  /* Uses of the callee that are not direct calls of it. */                    \
  M(CalleeOtherUses, "callee_other_uses")                                      \
  /* Direct calls of the callee in the caller. */                              \
  M(CalleeCallsInCaller, "callee_calls_in_caller")                             \
  /* 1 if LLVM deletes the callee when it has no uses. */                      \
  M(CalleeIsDiscardable, "callee_is_discardable")                              \
  /* Instructions, including those that were inlined earlier. */               \
  M(CalleeInstructions, "callee_instructions")                                 \
  M(CallerInstructions, "caller_instructions")                                 \
  M(ArgumentCount, "argument_count")                                           \
  M(ReturnsValue, "returns_value")                                             \
  /* 1 if the call is an invoke, which has a landing pad. */                   \
  M(IsInvoke, "is_invoke")                                                     \
  /* 1 if the callee cannot unwind. */                                         \
  M(CalleeIsNounwind, "callee_is_nounwind")                                    \
  /* The number of files that emit the callee (see CalleeFiles). */            \
  M(CalleeFiles, "callee_files")

enum class CallFeature : std::size_t {
#define MLBRIDGE_FEATURE(ENUMERATOR, NAME) ENUMERATOR,
  MLBRIDGE_CALL_FEATURES(MLBRIDGE_FEATURE)
#undef MLBRIDGE_FEATURE
      Count
};

constexpr std::size_t NumCallFeatures = std::size_t(CallFeature::Count);
extern const std::array<const char *, NumCallFeatures> CallFeatureNames;

/// Holds the number of files that emit each function of the program. Many
/// threads may read an object while no thread changes it.
class CalleeFiles {
public:
  /// Reads a file with a line `COUNT NAME` for each function. Returns System if
  /// the file cannot be read, or Malformed with the number of a line that has
  /// another form.
  static Expected<CalleeFiles> read(llvm::StringRef Path);

  /// Returns the number of files that emit \p Callee. If the file has no line
  /// for \p Callee, returns 0 (unknown) for a function that the linker merges,
  /// and 1 for all other functions.
  std::int64_t of(const llvm::Function &Callee) const;

private:
  llvm::StringMap<std::int64_t> Counts;
};

/// Returns the features of \p Call, a direct call, in the order of CallFeature.
std::array<std::int64_t, NumCallFeatures>
callFeatures(const llvm::CallBase &Call, const CalleeFiles &Files);

} // namespace MLBridge

#endif // MLBRIDGE_LLVM_INLINER_CALLFEATURES_H
