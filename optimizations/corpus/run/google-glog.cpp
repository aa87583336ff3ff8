// Logs in all ways of glog, and demangles names. The logs are always the same,
// because they lack the line prefixes, which contain the time.
#include "config.h"
#include "demangle.h"
#include "driver.h"
#include "glog/logging.h"
#include "glog/raw_logging.h"
#include "glog/stl_logging.h"
#include "stacktrace.h"
#include "symbolize.h"
#include "utilities.h"

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <vector>

static Checksum Sum;

// Receives the messages of the log.
struct Sink : google::LogSink {
  void send(google::LogSeverity Severity, const char *, const char *Base, int,
            const google::LogMessageTime &, const char *Message,
            size_t Size) override {
    Sum.add(google::GetLogSeverityName(Severity));
    Sum.add(Base);
    Sum.add(std::string_view(Message, Size));
  }
};

// Replaces the log file of a severity.
struct Counter : google::base::Logger {
  uint32_t Size = 0;
  void Write(bool, time_t, const char *Message, size_t Length) override {
    Size += Length;
    Sum.add(std::string_view(Message, Length));
  }
  void Flush() override {}
  google::uint32 LogSize() override { return Size; }
};

static void logAll(Draw &Random, int Round) {
  const std::vector<int> Numbers = {Round, 2,
                                    static_cast<int>(Random.below(99))};
  const std::map<std::string, int> Map = {{Random.word(), 1}, {"b", Round}};
  LOG(INFO) << "message " << Random.text(4) << ' ' << Round << ' '
            << Round / 7.0;
  LOG(WARNING) << "numbers " << Numbers << " and map " << Map << ", set "
               << std::set<char>{'a', 'c'};
  LOG_IF(ERROR, Round % 10 == 0) << "message " << Random.word();
  LOG_EVERY_N(INFO, 7) << "message " << google::COUNTER;
  LOG_IF_EVERY_N(INFO, Round % 2 == 0, 5) << "even " << google::COUNTER;
  LOG_FIRST_N(WARNING, 20) << "first " << google::COUNTER;
  VLOG(1) << "message verbose";
  VLOG(3) << "not this";
  VLOG_IF(1, Round % 3 == 0) << "verbose third";
  VLOG_EVERY_N(1, 9) << "verbose " << google::COUNTER;
  errno = ENOENT;
  PLOG(WARNING) << "message";
  PLOG_IF(INFO, Round % 4 == 0) << "message fourth";
  std::string Text;
  std::vector<std::string> Lines;
  Sink Own;
  LOG_TO_STRING(INFO, &Text) << "to a string " << Round;
  LOG_STRING(WARNING, &Lines) << "to a list " << Round;
  LOG_TO_SINK(&Own, INFO) << "also to this sink";
  LOG_TO_SINK_BUT_NOT_TO_LOGFILE(&Own, INFO) << "only to this sink";
  Sum.add(Text + Lines.at(0));
  CHECK(Round >= 0) << "never";
  CHECK_EQ(Numbers.size(), 3u);
  CHECK_NE(Round, -1);
  CHECK_LE(1, 2);
  CHECK_LT(1, 2);
  CHECK_GE(2, 1);
  CHECK_GT(2, 1);
  CHECK_STREQ("a", "a");
  CHECK_STRNE("a", "b");
  CHECK_STRCASEEQ("a", "A");
  CHECK_STRCASENE("a", "B");
  CHECK_NOTNULL(&Numbers);
  CHECK_DOUBLE_EQ(0.5, 0.5);
  CHECK_NEAR(1.0, 1.1, 0.2);
  CHECK_ERR(0);
  DLOG(INFO) << "only with assertions";
  if (Round % 50 == 0)
    RAW_LOG(WARNING, "message %d %s", Round, "raw");
  RAW_VLOG(1, "message %d", Round);
  LOG(INFO) << std::string(Random.below(60), 'x') << '\n';
}

static void demangle() {
  for (const char *Name :
       {"_ZN3foo3barEv",
        "_ZSt4cout",
        "_ZNKSt6vectorIiSaIiEE4sizeEv",
        "_ZN1AplERKS_",
        "_Z3maxIiET_S0_S0_",
        "_ZN1AC1Ev",
        "_ZN1AD2Ev",
        "_ZTV3Foo",
        "_ZTI3Foo",
        "_ZTSN1A1BE",
        "_ZGVZ4mainE1x",
        "_Z1fPFivE",
        "_Z1fILi5EEvv",
        "_Z1fM1AKFvvE",
        "_ZZ4mainENKUlvE_clEv",
        "_Z1fA10_i",
        "_Z1fz",
        "_ZN1AixEi",
        "_ZNK1AcvbEv",
        "_ZThn8_N1A1fEv",
        "_ZTv0_n24_N1A1fEv",
        "_Z1fRKSsS0_",
        "_ZN12_GLOBAL__N_11fEv",
        "_ZNSt3mapISsiSt4lessISsESaISt4pairIKSsiEEE4findERS3_",
        "_Z1fIXadL_Z1gvEEEvv",
        "_Z1fIiEDTplfp_cvT_Li1EES1_",
        "_ZL1fv.clone.1",
        "_Z",
        "main",
        "_ZN3foo",
        "_Z1fIJicEEvDpT_",
        "_ZNO1A1fEOi",
        "_Z1fUlvE_",
        "_ZN1AaSERKS_",
        "_ZnwmPv",
        "_Z1fDn",
        "_Z1fIXsr3std7is_sameIT_iE5valueEEvv",
        "_Z1fIsEvNT_1tE"}) {
    char Text[200], Small[12];
    Sum.add(google::Demangle(Name, Text, sizeof(Text)) ? Text : "none");
    Sum.add(google::Demangle(Name, Small, sizeof(Small)));
  }
}

static void useFiles() {
  google::FlushLogFiles(google::GLOG_INFO);
  for (const char *Path : {"info.log", "warning.log", "error.log"}) {
    std::ifstream Log(Path);
    int Count = 0;
    for (std::string Line; std::getline(Log, Line);)
      if (Line.find("message") != std::string::npos) {
        Sum.add(Line);
        ++Count;
      }
    Sum.add(Count);
  }
  google::TruncateLogFile("info.log", 1000, 500);
  std::vector<std::string> Folders;
  google::GetExistingTempDirectories(&Folders);
  Sum.add(Folders.empty() || google::GetLoggingDirectories().empty());
}

// useTools() looks for this function's name.
extern "C" __attribute__((noinline, used)) int keepName() { return 1; }

static void useTools() {
  char Name[100] = "none";
  // Do not add the name. If the function's address is low, glog finds the name
  // of a thread-local variable instead.
  Sum.add(google::Symbolize(reinterpret_cast<void *>(&keepName), Name,
                            sizeof(Name)));
  std::string Trace;
  google::glog_internal_namespace_::DumpStackTraceToString(&Trace);
  void *Frames[10];
  Sum.add(google::GetStackTrace(Frames, 10, 0) > 0 && !Trace.empty());
  Sum.add(google::StrError(2) +
          google::glog_internal_namespace_::const_basename("a/b.cc"));
  Sum.add(google::SetVLOGLevel("google-*", 2));
  Sum.add(google::IsGoogleLoggingInitialized());
  VLOG(2) << "a module";
  // Do not add the prefix itself, because it contains the time.
  const google::LogMessageTime Now;
  Sum.add(
      google::LogSink::ToString(google::GLOG_INFO, "f", 1, Now, "x", 1).size() >
      9);
}

// Ends the program as glog does after a fatal message.
__attribute__((noreturn)) static void end() { std::exit(7); }

static void writeCrash(const char *, size_t) {}

int main(int Count, char **Arguments) {
  const std::string What = Arguments[1];
  FLAGS_log_prefix = false;
  FLAGS_timestamp_in_logfile_name = false;
  FLAGS_v = 1;
  FLAGS_vmodule = "other=2,some*=1";
  google::InitGoogleLogging("google-glog");
  for (int Severity = 0; Severity < google::NUM_SEVERITIES; ++Severity)
    google::SetLogSymlink(Severity, "");
  google::SetLogDestination(google::GLOG_INFO, "info");
  google::SetLogDestination(google::GLOG_WARNING, "warning");
  google::SetLogDestination(google::GLOG_ERROR, "error");
  google::SetLogFilenameExtension(".log");
  if (What == "fatal") {
    google::InstallFailureFunction(&end);
    CHECK_EQ(Count, 0) << "always fails";
  }
  if (What == "crash") {
    google::InstallFailureSignalHandler();
    google::InstallFailureWriter(&writeCrash);
    std::abort();
  }
  Sink Each;
  google::AddLogSink(&Each);
  Draw Random(1);
  const int Rounds = std::atoi(Arguments[1]);
  for (int Round = 0; Round < Rounds; ++Round) {
    logAll(Random, Round);
    demangle();
    FLAGS_minloglevel =
        Round % 5 == 0 ? google::GLOG_WARNING : google::GLOG_INFO;
  }
  useFiles();
  useTools();
  Counter Own;
  google::base::Logger *Before = google::base::GetLogger(google::GLOG_INFO);
  google::base::SetLogger(google::GLOG_INFO, &Own);
  FLAGS_minloglevel = google::GLOG_INFO;
  LOG(INFO) << "to the own logger";
  Sum.add(Own.LogSize());
  google::base::SetLogger(google::GLOG_INFO, Before);
  google::SetStderrLogging(google::GLOG_ERROR);
  google::LogToStderr();
  LOG(ERROR) << "to stderr";
  FLAGS_logtostdout = true;
  LOG(ERROR) << "to stdout";
  google::ReprintFatalMessage();
  google::RemoveLogSink(&Each);
  google::ShutdownGoogleLogging();
  Sum.print("google-glog");
}
