//===- GRPCSpec.cpp - gRPC's addresses and options in specs ---------------===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GRPC/GRPCSpec.h"

#include "Core/InvalidSpec.h"

#include <algorithm>
#include <charconv>
#include <sys/un.h>

using namespace MLBridge;
using namespace MLBridge::GRPC;

Expected<std::string> GRPC::addressOf(const ModelSpec &Spec) {
  if (Spec.Scheme == "grpc+unix") {
    // Check the length, because gRPC accepts only paths that fit sun_path.
    if (Spec.Path.empty() || Spec.Path.size() >= sizeof(sockaddr_un::sun_path))
      return invalidSpec(Spec,
                         "expected the path of a socket, of at most " +
                             std::to_string(sizeof(sockaddr_un::sun_path) - 1) +
                             " bytes");
    return "unix:" + Spec.Path;
  }
  std::string_view Address = Spec.Path;
  if (Address.starts_with("//"))
    Address.remove_prefix(2);
  const std::size_t Colon = Address.rfind(':');
  unsigned Port = 0;
  if (Colon != std::string_view::npos && Colon != 0) {
    const char *End = Address.data() + Address.size();
    auto [Rest, Problem] =
        std::from_chars(Address.data() + Colon + 1, End, Port);
    if (Problem == std::errc() && Rest == End && Port <= 65535)
      return std::string(Address);
  }
  return invalidSpec(Spec,
                     "expected //HOST:PORT, such as "
                     "grpc://advisor.example:50051 or grpc://[::1]:50051");
}

Expected<gRPCCredentials> GRPC::credentialsOf(const ModelSpec &Spec) {
  gRPCCredentials Files{std::string(Spec.option("tls", {})),
                        std::string(Spec.option("cert", {})),
                        std::string(Spec.option("key", {}))};
  if (Files.Certificate.empty() != Files.Key.empty())
    return invalidSpec(Spec, std::string("expected 'cert' and 'key' together, "
                                         "found '") +
                                 (Files.Key.empty() ? "cert" : "key") +
                                 "' alone");
  return Files;
}

/// Returns true if \p Name consists of words of letters, digits and
/// underscores. \p Dots is true if dots separate the words.
static bool isProtoName(std::string_view Name, bool Dots) {
  auto IsWordCharacter = [](char C) {
    return (C >= 'a' && C <= 'z') || (C >= 'A' && C <= 'Z') ||
           (C >= '0' && C <= '9') || C == '_';
  };
  return !Name.empty() && Name.front() != '.' && Name.back() != '.' &&
         std::ranges::all_of(Name, [&](char C) {
           return IsWordCharacter(C) || (Dots && C == '.');
         });
}

Expected<std::string> GRPC::methodOf(const ModelSpec &Spec) {
  const std::string_view Service = Spec.option("service", {});
  const std::string_view Method = Spec.option("method", {});
  if (!Service.data() && !Method.data())
    return std::string();
  if (!isProtoName(Service, /*Dots=*/true) ||
      !isProtoName(Method, /*Dots=*/false))
    return invalidSpec(Spec, "expected 'service' and 'method' together, such "
                             "as service=my.Advisor&method=Decide; found "
                             "service='" +
                                 std::string(Service) + "' and method='" +
                                 std::string(Method) + "'");
  return "/" + std::string(Service) + "/" + std::string(Method);
}

Expected<std::string> GRPC::serDesOf(const ModelSpec &Spec,
                                     const SerDesFactory &Formats) {
  const std::string_view Named = Spec.option("serdes", {});
  if (Named.data())
    return std::string(Named);
  std::string Found;
  if (Spec.option("service", {}).data())
    for (const SerDesFactory::Format &F : Formats.formats()) {
      if (!F.Name.starts_with("protobuf:"))
        continue;
      if (!Found.empty())
        return invalidSpec(Spec, "expected the option 'serdes', because there "
                                 "are messages for several methods: " +
                                     Found + " and " + F.Name);
      Found = F.Name;
    }
  return Found.empty() ? std::string(defaultSerDes(Formats)) : Found;
}

std::string GRPC::nameOf(const std::string &Address) {
  constexpr std::string_view Local = "unix:";
  return Address.starts_with(Local) ? Address.substr(Local.size())
                                    : "//" + Address;
}

Expected<ServerSpec> ServerSpec::parse(std::string_view Text,
                                       std::size_t MaxMessage,
                                       std::size_t MaxSessions,
                                       const SerDesFactory &Formats,
                                       bool IsTraining) {
  static constexpr std::string_view OfInference[] = {
      "tls", "cert", "key", "max-message", "max-sessions", "service", "method"};
  // Accept `serdes`, because a stock client does not name the SerDes to which
  // the method's messages belong.
  static constexpr std::string_view OfOwnService[] = {
      "tls",          "cert",    "key",    "max-message",
      "max-sessions", "service", "method", "serdes"};
  static constexpr std::string_view OfTraining[] = {
      "tls",      "cert", "key",       "max-message", "serdes", "connect",
      "announce", "call", "keepalive", "service",     "method"};
  Expected<ModelSpec> Spec = ModelSpec::parse(Text);
  if (!Spec)
    return Spec.takeError();
  if (Spec->Scheme != "grpc" && Spec->Scheme != "grpc+unix")
    return invalidSpec(*Spec, "expected grpc://HOST:PORT or grpc+unix:PATH");
  // If the spec has no host, listen only for processes of this machine.
  if (Spec->Path.starts_with("//:"))
    Spec->Path.insert(2, "127.0.0.1");
  Expected<std::string> Address = addressOf(*Spec);
  if (!Address)
    return Address.takeError();
  Expected<std::string> Method = methodOf(*Spec);
  if (!Method)
    return Method.takeError();
  if (Error E = IsTraining        ? Spec->checkOptions(OfTraining)
                : Method->empty() ? Spec->checkOptions(OfInference)
                                  : Spec->checkOptions(OfOwnService))
    return E;
  Expected<std::string> SerDes = serDesOf(*Spec, Formats);
  if (!SerDes)
    return SerDes.takeError();
  Expected<gRPCCredentials> Credentials = credentialsOf(*Spec);
  if (!Credentials)
    return Credentials.takeError();
  if (!Credentials->empty() && Credentials->Certificate.empty())
    return invalidSpec(*Spec, "a TLS server needs a certificate: 'tls' "
                              "requires 'cert' and 'key'");
  Expected<std::size_t> Limit = Spec->bytes("max-message", MaxMessage);
  if (!Limit)
    return Limit.takeError();
  Expected<std::size_t> Sessions = Spec->number("max-sessions", MaxSessions);
  if (!Sessions)
    return Sessions.takeError();
  return ServerSpec{std::move(*Address),
                    std::move(*Credentials),
                    *Limit,
                    *Sessions,
                    std::move(*Method),
                    std::move(*SerDes),
                    std::string(Spec->option("announce", {}))};
}

std::string_view GRPC::defaultSerDes(const SerDesFactory &Formats) {
  constexpr std::string_view Stock = "protobuf";
  for (const SerDesFactory::Format &F : Formats.formats())
    if (F.Name == Stock)
      return Stock;
  return "bitstream";
}
