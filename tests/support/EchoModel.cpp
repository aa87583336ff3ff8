//===- EchoModel.cpp - A model that answers what it is asked --------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/EchoModel.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <unistd.h>

using namespace MLBridge;
using namespace MLBridge::test;

TemporaryDirectory::TemporaryDirectory() {
  std::string Template =
      (std::filesystem::temp_directory_path() / "mlbridge-test-XXXXXX")
          .string();
  if (!::mkdtemp(Template.data())) {
    std::perror("mkdtemp");
    std::exit(1);
  }
  Path = Template;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code Ignored;
  std::filesystem::remove_all(Path, Ignored);
}

static std::unique_ptr<ModelServer> listen(std::string Name,
                                           ModelServerOptions Options) {
  Expected<std::unique_ptr<ModelServer>> Listening =
      ModelServer::listen(std::move(Name), std::move(Options));
  if (!Listening) {
    std::fprintf(stderr, "echo model: %s\n",
                 Listening.takeError().str().c_str());
    std::exit(1);
  }
  return std::move(*Listening);
}

EchoModel::EchoModel(std::string Name, ModelServerOptions Options)
    : EchoModel(listen(std::move(Name), std::move(Options))) {}

EchoModel::EchoModel(std::unique_ptr<ModelServer> TheServer)
    : Server(std::move(TheServer)) {
  Thread = std::thread([this] { run(); });
}

EchoModel::~EchoModel() { stop(); }

ModelServer &EchoModel::stop() {
  Stop = true;
  if (Thread.joinable())
    Thread.join();
  return *Server;
}

void EchoModel::run() {
  while (!Stop) {
    Expected<ModelServer::Request> Q =
        Server->next(Deadline::in(std::chrono::milliseconds(20)));
    if (!Q)
      continue;
    std::string_view Wish;
    for (const TensorView &T : Q->Features)
      if (T.Name == Control && T.Type == ElementType::String)
        Wish = T.text();
    // What a reply could not be sent to is gone, which the test will see at
    // its own end.
    if (Wish == "fail")
      (void)bool(Server->replyError("the weights are missing"));
    else if (Wish == "defer")
      (void)bool(Server->replyDeferred("not my decision"));
    else
      (void)bool(Server->reply(Q->Features));
  }
}
