//===- ModelServer.h - The model's side of a session ------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// ModelServer: meets compilers at a name and hands out their questions one
/// after another. Python's PipeCompilerInterface is a thin face over it; a
/// model written in C++ uses it directly.
/// \code
///   auto Server = ModelServer::listen("/tmp/advisor");
///   FeatureSet Reply;
///   while (auto Question = (*Server)->next(Deadline::never())) {
///     Reply.clear();
///     Reply.set("out", decide(Question->Features));
///     if (Error E = (*Server)->reply(Reply.tensors()))
///       std::cerr << E.str() << '\n'; // This compiler has gone.
///   }
/// \endcode
///
//===----------------------------------------------------------------------===//

#ifndef MLCOMPILERBRIDGE_MODELSERVER_H
#define MLCOMPILERBRIDGE_MODELSERVER_H

#include "MLCompilerBridge/BaseSerDes.h"
#include "MLCompilerBridge/Transport.h"

#include <functional>
#include <memory>
#include <string>

namespace MLBridge {

/// How a ModelServer meets its compilers.
struct ModelServerOptions {
  /// Also offer NAME.in and NAME.out for foreign compilers, one at a time,
  /// which speak BareFormat. Our own meet at NAME.sock and choose theirs.
  bool Bare = true;
  std::string BareFormat = "bitstream";
  /// The SerDes of the name that a compiler asks for. Replace it to serve one
  /// of your own (examples/own-serdes.cpp).
  std::function<Expected<std::unique_ptr<BaseSerDes>>(std::string_view)>
      MakeSerDes = [](std::string_view Name) { return SerDes::create(Name); };
  /// A compiler that announces a longer message is refused.
  std::size_t MaxMessage = TransportOptions().MaxMessage;
  /// How long a compiler may take to accept a reply, or to say hello.
  Duration PeerTimeout = std::chrono::seconds(10);
};

/// Serves any number of compilers, each in its own session. A compiler that
/// dies, stalls or sends nonsense ends its own session only. Used by one
/// thread at a time, and by the process that has made it: one that forks, as a
/// daemon does, forks first and listens then.
class ModelServer {
public:
  /// One question. The views are valid until the next call of next().
  struct Question {
    Span<const TensorView> Features;
    /// Which compiler asks; counts up from 1.
    std::uint64_t Session = 0;
    /// Its process.
    int Pid = 0;
    /// It is a foreign compiler on bare pipes, which says neither its process
    /// nor the advice it wants.
    bool Bare = false;
    /// elementTypeName() of the advice it wants, or empty where it did not
    /// say.
    std::string_view AdviceType;
    /// Changes whenever the features' names, types, shapes or addresses may
    /// have; callers that cache views of them compare it.
    std::uint64_t Layout = 0;
    /// Keeps the memory of the views alive for those who hold them longer;
    /// their contents change all the same.
    std::shared_ptr<const void> Memory;
  };

  struct Statistics {
    std::uint64_t Sessions = 0;  ///< Met so far.
    std::uint64_t Open = 0;      ///< Of these, now open.
    std::uint64_t Questions = 0; ///< Answered or not.
  };

  /// Listens at \p Name (mode 0600: only this user's compilers get in). Takes
  /// over what a dead server left there; another live one is an error.
  static Expected<std::unique_ptr<ModelServer>>
  listen(std::string Name, ModelServerOptions Options = {});
  virtual ~ModelServer();

  /// The next question of any compiler. Errors: Timeout when \p Until passes;
  /// System when this end is broken. What a compiler does wrong ends that
  /// session and shows in lastSessionError(), not here. A question that was
  /// not answered by the next call is answered with an error.
  virtual Expected<Question> next(Deadline Until) = 0;
  /// Answers the last question. An error means that this compiler did not get
  /// it; its session is over, the server goes on.
  virtual Error reply(Span<const TensorView> Advice) = 0;
  /// Answers that the model failed: the compiler sees ErrorCode::Model.
  Error replyError(std::string_view Message);
  /// Leaves the decision to the compiler: it sees ErrorCode::Deferred.
  Error replyDeferred(std::string_view Why);

  virtual Statistics statistics() const = 0;
  /// Why the last session that did not end well ended; success if none did.
  virtual Error lastSessionError() const = 0;
  virtual const std::string &name() const = 0;
};

} // namespace MLBridge

#endif // MLCOMPILERBRIDGE_MODELSERVER_H
