//===- EchoModel.cpp - A model that echoes its features -------------------===//
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

std::unique_ptr<ModelServer> test::serverOf(std::unique_ptr<Listener> Only) {
  std::vector<std::unique_ptr<Listener>> Listeners;
  Listeners.push_back(std::move(Only));
  return ModelServer::create(std::move(Listeners));
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
    Expected<ModelServer::Request> Request =
        Server->next(Deadline::in(std::chrono::milliseconds(20)));
    if (!Request)
      continue;
    std::string_view Command;
    for (const TensorView &T : Request->Features)
      if (T.Name == Control && T.Type == ElementType::String)
        Command = T.text();
    // A failure to send is ignored, because the test notices it on its own
    // side.
    if (Command == "fail")
      (void)bool(Server->replyError("the weights are missing"));
    else if (Command == "defer")
      (void)bool(Server->replyDeferred("not my decision"));
    else
      (void)bool(Server->reply(Request->Features));
  }
}
