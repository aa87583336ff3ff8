//===- FloorModule.cpp - The model's end of the floors ----------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// rtt_floor is a Python module that replies to the requests of the floors. A
/// floor is the fastest possible round trip with the same bytes, without this
/// library. The loop is in C++, because a call from Python for each trip would
/// make the floor slower than the library's runner.
///
//===----------------------------------------------------------------------===//

#include "FutexFloor.h"
#include "PipeFloor.h"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

using namespace MLBridge;
using namespace MLBridge::bench;

/// Answers each request with the request's last feature value, until the client
/// ends.
static void servePipe(int Read, int Write) {
  nb::gil_scoped_release Release;
  FloorPipe Pipe(Read, Write);
  FloorRequest Request;
  std::byte Reply[FloorFrames::ReplySize];
  FloorFrames::setLength(Reply, sizeof(Reply));
  while (std::size_t Size = Pipe.receive(Request.region())) {
    if (Size < FloorFrames::requestSize(1))
      return;
    const std::byte *Last = Request.data() + Size - 1 - sizeof(float);
    std::memcpy(Reply + sizeof(std::uint64_t), Last, sizeof(float));
    if (!Pipe.send(Reply))
      return;
  }
}

/// Answers each request in shared memory with the request's last feature value.
/// Returns if no request arrives within a second and the parent process has
/// ended.
static void serveFutex(int Memory) {
  nb::gil_scoped_release Release;
  std::unique_ptr<FutexFloor> Floor = FutexFloor::map(Memory);
  const pid_t Parent = ::getppid();
  while (Floor && (Floor->serve() || ::getppid() == Parent))
    ;
}

NB_MODULE(rtt_floor, M) {
  M.doc() = "The model's end of the raw floors of `mlbridge bench rtt`.";
  M.def("serve_pipe", servePipe, nb::arg("read_fd"), nb::arg("write_fd"),
        "Answers each frame with its last float32 until the pipe ends.");
  M.def("serve_futex", serveFutex, nb::arg("memory_fd"),
        "Answers each request with its last float32 until its parent ends.");
}
