//===- AllocationCounter.cpp - Counts heap allocations --------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/AllocationCounter.h"

#include <cerrno>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MLBRIDGE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MLBRIDGE_SANITIZED 1
#endif
#endif

static thread_local std::size_t Allocations = 0;
/// The number of allocations that succeed before one fails. If the number is
/// negative, all allocations succeed.
static thread_local std::ptrdiff_t UntilFailure = -1;

#ifdef MLBRIDGE_SANITIZED

extern "C" int __sanitizer_install_malloc_and_free_hooks(
    void (*OnMalloc)(const volatile void *, std::size_t),
    void (*OnFree)(const volatile void *));

namespace {
void countMalloc(const volatile void *, std::size_t) { ++Allocations; }
void ignoreFree(const volatile void *) {}
[[maybe_unused]] const int Installed =
    __sanitizer_install_malloc_and_free_hooks(countMalloc, ignoreFree);
} // namespace

#else

// The functions defined below (malloc, ...) replace glibc's in the whole test
// program. operator new calls them, too. glibc exports its own functions under
// the names __libc_malloc, ...
extern "C" {
void *__libc_malloc(std::size_t);
void *__libc_calloc(std::size_t, std::size_t);
void *__libc_realloc(void *, std::size_t);
void *__libc_memalign(std::size_t, std::size_t);

/// Counts an allocation. Returns false if the allocation must fail.
static bool grant() {
  ++Allocations;
  if (UntilFailure < 0)
    return true;
  --UntilFailure;
  if (UntilFailure >= 0)
    return true;
  errno = ENOMEM;
  return false;
}

void *malloc(std::size_t Size) {
  return grant() ? __libc_malloc(Size) : nullptr;
}
void *calloc(std::size_t Count, std::size_t Size) {
  return grant() ? __libc_calloc(Count, Size) : nullptr;
}
void *realloc(void *Memory, std::size_t Size) {
  return grant() ? __libc_realloc(Memory, Size) : nullptr;
}
void *memalign(std::size_t Alignment, std::size_t Size) {
  return grant() ? __libc_memalign(Alignment, Size) : nullptr;
}
void *aligned_alloc(std::size_t Alignment, std::size_t Size) {
  return memalign(Alignment, Size);
}
int posix_memalign(void **Out, std::size_t Alignment, std::size_t Size) {
  *Out = memalign(Alignment, Size);
  return *Out ? 0 : ENOMEM;
}
}

#endif

using namespace MLBridge::test;

std::size_t AllocationCounter::total() { return Allocations; }

bool AllocationFailure::isPossible() {
#ifdef MLBRIDGE_SANITIZED
  return false;
#else
  return true;
#endif
}

AllocationFailure::AllocationFailure(std::size_t After) {
  UntilFailure = static_cast<std::ptrdiff_t>(After);
}

AllocationFailure::~AllocationFailure() { UntilFailure = -1; }

bool AllocationFailure::hasHappened() const { return UntilFailure < 0; }
