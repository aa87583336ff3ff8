//===- policy-server.cpp - A model for tests ------------------------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `policy-server NAME POLICY -- COMMAND...` serves POLICY at NAME in its own
/// process while COMMAND runs, and exits with COMMAND's status. After COMMAND,
/// it prints to stderr:
/// \code
///   policy-server: sessions=1 requests=12 features=38
/// \endcode
/// The policies are `yes`, `no`, `default` (LLVM's own decision, from the
/// feature inlining_default), `defer`, `fail` (an error of the model),
/// `nonsense` (a string), and `die-after=N` (replies `yes` N times, then
/// SIGKILL).
///
//===----------------------------------------------------------------------===//

#include "MLCompilerBridge/FeatureSet.h"
#include "MLCompilerBridge/Transport/ModelServer.h"
#ifdef MLBRIDGE_HAS_GRPC
#include "MLCompilerBridge/Transport/gRPCListener.h"
#endif

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace MLBridge;

namespace {

constexpr int ServerFailed = 125;

std::optional<std::int64_t>
defaultDecision(const ModelServer::Request &Request) {
  for (const TensorView &Feature : Request.Features)
    if (Feature.Name == "inlining_default")
      if (auto Values = Feature.as<std::int64_t>())
        return (*Values)[0];
  return std::nullopt;
}

Error answer(ModelServer &Server, const ModelServer::Request &Request,
             std::string_view Policy, FeatureSet &Reply) {
  Reply.clear();
  if (Policy == "defer")
    return Server.replyDeferred("the policy is to defer");
  if (Policy == "fail")
    return Server.replyError("the policy is to fail");
  if (Policy == "nonsense") {
    Reply.set("inlining_decision", "perhaps");
  } else if (Policy == "default") {
    std::optional<std::int64_t> Default = defaultDecision(Request);
    if (!Default)
      return Server.replyError("there is no feature 'inlining_default'");
    Reply.set("inlining_decision", *Default);
  } else {
    Reply.set("inlining_decision", std::int64_t(Policy != "no"));
  }
  return Server.reply(Reply.tensors());
}

/// Listens at the name of a pipe or, with gRPC, at a spec.
Expected<std::unique_ptr<ModelServer>> listenAt(const char *Name) {
#ifdef MLBRIDGE_HAS_GRPC
  if (std::string_view(Name).starts_with("grpc")) {
    Expected<std::unique_ptr<Listener>> Opened = openGRPCListener(Name);
    if (!Opened)
      return Opened.takeError();
    std::vector<std::unique_ptr<Listener>> Listeners;
    Listeners.push_back(std::move(*Opened));
    return ModelServer::create(std::move(Listeners));
  }
#endif
  return ModelServer::listen(Name);
}

/// Writes to \p Ready when the server listens. Ends when \p Lifeline is closed.
int serve(const char *Name, std::string_view Policy, int Ready, int Lifeline) {
  long LifeTime = -1;
  constexpr std::string_view DieAfter = "die-after=";
  if (Policy.starts_with(DieAfter))
    LifeTime = std::atol(Policy.data() + DieAfter.size());

  Expected<std::unique_ptr<ModelServer>> Server = listenAt(Name);
  if (!Server) {
    std::fprintf(stderr, "policy-server: %s\n",
                 Server.takeError().str().c_str());
    return ServerFailed;
  }
  if (write(Ready, "", 1) != 1)
    return ServerFailed;

  FeatureSet Reply;
  std::size_t NumFeatures = 0;
  for (;;) {
    Expected<ModelServer::Request> Request =
        (*Server)->next(Deadline::in(std::chrono::milliseconds(20)));
    if (Request) {
      if (LifeTime-- == 0)
        raise(SIGKILL);
      NumFeatures = Request->Features.size();
      // An error is ignored, because the compiler notices the end of the
      // session.
      (void)bool(answer(**Server, *Request, Policy, Reply));
      continue;
    }
    if (Request.code() != ErrorCode::Timeout) {
      std::fprintf(stderr, "policy-server: %s\n",
                   Request.takeError().str().c_str());
      return ServerFailed;
    }
    pollfd Parent{Lifeline, POLLIN, 0};
    if (poll(&Parent, 1, 0) != 0)
      break;
  }
  ModelServer::Statistics Seen = (*Server)->statistics();
  std::fprintf(stderr,
               "policy-server: sessions=%llu requests=%llu "
               "features=%zu\n",
               static_cast<unsigned long long>(Seen.Sessions),
               static_cast<unsigned long long>(Seen.Requests), NumFeatures);
  return 0;
}

} // namespace

int main(int Argc, char **Argv) {
  if (Argc < 5 || std::string_view(Argv[3]) != "--") {
    std::fprintf(stderr, "usage: %s NAME POLICY -- COMMAND...\n", Argv[0]);
    return ServerFailed;
  }
  // The descriptors are close-on-exec, because COMMAND must not keep the server
  // alive.
  int Ready[2], Lifeline[2];
  if (pipe2(Ready, O_CLOEXEC) != 0 || pipe2(Lifeline, O_CLOEXEC) != 0) {
    std::perror("policy-server: pipe");
    return ServerFailed;
  }
  const pid_t Server = fork();
  if (Server == 0) {
    close(Lifeline[1]);
    return serve(Argv[1], Argv[2], Ready[1], Lifeline[0]);
  }
  close(Ready[1]);
  char Byte;
  if (Server < 0 || read(Ready[0], &Byte, 1) != 1)
    return ServerFailed;

  const pid_t Command = fork();
  if (Command == 0) {
    execvp(Argv[4], Argv + 4);
    std::perror(Argv[4]);
    _exit(127);
  }
  int Status = 0;
  if (Command < 0 || waitpid(Command, &Status, 0) != Command)
    return ServerFailed;
  close(Lifeline[1]);
  waitpid(Server, nullptr, 0);
  return WIFEXITED(Status) ? WEXITSTATUS(Status) : 128 + WTERMSIG(Status);
}
