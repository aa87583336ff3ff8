//===- Protobuf.cpp - mlbridge._format_protobuf -----------------*- C++ -*-===//
//
// Part of ML-Compiler-Bridge, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Binds ProtobufSerDes, both for the generic messages and for the user's own
/// messages. The user's messages are passed as serialised descriptors, because
/// Python's protobuf package and this module cannot share objects. Pickle sends
/// the same descriptors to other processes.
///
//===----------------------------------------------------------------------===//

#include "../Errors.h"

#include "MLCompilerBridge/SerDes/ProtobufSerDes.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <nanobind/stl/string.h>

namespace nb = nanobind;
namespace pb = google::protobuf;

using namespace MLBridge;
using namespace MLBridge::Python;

namespace {

class BuildErrors final : public pb::DescriptorPool::ErrorCollector {
public:
  void AddError(const std::string &File, const std::string &Element,
                const pb::Message *, ErrorLocation,
                const std::string &What) override {
    Text += (Text.empty() ? "" : "; ") + File + ": " + Element + ": " + What;
  }

  std::string Text;
};

/// The format of the user's own messages, with the arguments of messages().
struct OwnMessages : SerDesFactory::Format {
  nb::object Descriptors;
  std::string Request, Reply;
};

} // namespace

static const pb::Descriptor &messageOf(const pb::DescriptorPool &Pool,
                                       const std::string &Name) {
  const pb::Descriptor *Found = Pool.FindMessageTypeByName(Name);
  if (!Found)
    raise({ErrorCode::InvalidArgument,
           "no message " + Name + " in these descriptors"});
  return *Found;
}

static OwnMessages messages(const nb::bytes &Descriptors,
                            const std::string &Request,
                            const std::string &Reply) {
  pb::FileDescriptorSet Set;
  if (!Set.ParseFromArray(Descriptors.data(),
                          static_cast<int>(Descriptors.size())))
    raise({ErrorCode::InvalidArgument,
           "expected a serialised FileDescriptorSet"});
  pb::DescriptorPool Pool;
  for (const pb::FileDescriptorProto &File : Set.file()) {
    BuildErrors Found;
    if (!Pool.BuildFileCollectingErrors(File, &Found))
      raise({ErrorCode::InvalidArgument,
             "these descriptors cannot be used: " + Found.Text});
  }
  SerDesFactory Formats;
  addProtobuf(Formats, messageOf(Pool, Request), messageOf(Pool, Reply));
  SerDesFactory::Format Made = Formats.formats().back();
  // Create a SerDes now, so that an invalid message type is reported here and
  // not when the first session starts.
  if (Error E = Made.Make(SerDes::Side::Model).takeError())
    raise(E);
  return {std::move(Made), Descriptors, Request, Reply};
}

/// Returns the function that makes the format again, and its arguments.
static nb::tuple reduce(const OwnMessages &Made) {
  return nb::make_tuple(
      nb::module_::import_("mlbridge.protobuf").attr("messages_from"),
      nb::make_tuple(Made.Descriptors, Made.Request, Made.Reply));
}

NB_MODULE(_format_protobuf, M) {
  M.doc() = "Protobuf for mlbridge; see mlbridge.protobuf.";
  // Import _core, which defines the class Format.
  nb::module_::import_("mlbridge._core");
  SerDesFactory Formats;
  addProtobuf(Formats);
  M.attr("FORMAT") = nb::cast(Formats.formats().back());
  nb::class_<OwnMessages, SerDesFactory::Format>(
      M, "OwnMessages", "The format of two messages. It can be pickled.")
      .def("__reduce__", reduce);
  M.def("messages", messages, nb::arg("descriptors"), nb::arg("request"),
        nb::arg("reply"),
        "Returns the format of the two messages with these full names. A "
        "serialised FileDescriptorSet describes the messages, with imported "
        "files first.");
}
