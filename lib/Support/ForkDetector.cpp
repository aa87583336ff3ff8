//===- ForkDetector.cpp - Whether this process was forked -----------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Support/ForkDetector.h"

#include <cstddef>
#include <sys/mman.h>
#include <unistd.h>

using namespace MLBridge;

/// The size of the mark in bytes. The kernel rounds it up to a page.
static constexpr std::size_t MarkSize = 1;

ForkDetector::ForkDetector() : Owner(::getpid()) {
  void *Page = ::mmap(nullptr, MarkSize, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (Page == MAP_FAILED)
    return;
  if (::madvise(Page, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)),
                MADV_WIPEONFORK) != 0) {
    ::munmap(Page, MarkSize);
    return;
  }
  Mark = Page;
  claim();
}

ForkDetector::~ForkDetector() {
  if (Mark)
    ::munmap(Mark, MarkSize);
}

void ForkDetector::claim() {
  Owner = ::getpid();
  if (Mark)
    *static_cast<volatile char *>(Mark) = 1;
}

bool ForkDetector::isOtherProcess() const { return ::getpid() != Owner; }
