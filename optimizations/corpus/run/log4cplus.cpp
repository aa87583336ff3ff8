// Configures loggers of log4cplus, writes messages through its appenders,
// layouts and filters, and reads the files. The program's argument is the
// number of messages.
#include "driver.h"
#include <log4cplus/asyncappender.h>
#include <log4cplus/callbackappender.h>
#include <log4cplus/clogger.h>
#include <log4cplus/configurator.h>
#include <log4cplus/consoleappender.h>
#include <log4cplus/fileappender.h>
#include <log4cplus/helpers/fileinfo.h>
#include <log4cplus/helpers/property.h>
#include <log4cplus/helpers/snprintf.h>
#include <log4cplus/helpers/socketbuffer.h>
#include <log4cplus/helpers/stringhelper.h>
#include <log4cplus/hierarchylocker.h>
#include <log4cplus/initializer.h>
#include <log4cplus/log4cplus.h>
#include <log4cplus/mdc.h>
#include <log4cplus/ndc.h>
#include <log4cplus/nullappender.h>
#include <log4cplus/socketappender.h>
#include <log4cplus/spi/filter.h>
#include <log4cplus/thread/syncprims.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

using namespace log4cplus;

static const char Settings[] =
    R"(
# The files are compared, so no pattern prints the real time.
folder=logs/deep
log4cplus.rootLogger=INFO, File, Async, None, Absent
log4cplus.logger.rolled=TRACE, Rolling
log4cplus.logger.rolled.times=DEBUG, Daily, Timed, Hourly
log4cplus.logger.pool=INHERITED, Pooled
log4cplus.additivity.rolled=false
log4cplus.additivity.pool=false
log4cplus.threadPoolSize=2
log4cplus.appender.Absent=log4cplus::Absent
log4cplus.appender.None=log4cplus::NullAppender
log4cplus.appender.File=log4cplus::FileAppender
log4cplus.appender.File.File=${folder}/file.log
log4cplus.appender.File.CreateDirs=true
log4cplus.appender.File.ImmediateFlush=false
log4cplus.appender.File.BufferSize=8000
log4cplus.appender.File.Locale=CLASSIC
log4cplus.appender.File.Threshold=info
log4cplus.appender.File.layout=log4cplus::PatternLayout
log4cplus.appender.File.layout.NDCMaxDepth=2
log4cplus.appender.File.layout.ConversionPattern=%d{%a %Y-%m-%d %H:%M:%S.%q %Q %s} )"
    R"(%-5p [%t %T] %c{2} %20.30c (%x) %X{user} %X %b:%L %l %M %F %E{absent} %m%n
log4cplus.appender.File.filters.1=log4cplus::spi::LogLevelMatchFilter
log4cplus.appender.File.filters.1.LogLevelToMatch=INFO
log4cplus.appender.File.filters.1.AcceptOnMatch=true
log4cplus.appender.File.filters.2=log4cplus::spi::StringMatchFilter
log4cplus.appender.File.filters.2.StringToMatch=aa
log4cplus.appender.File.filters.2.AcceptOnMatch=false
log4cplus.appender.File.filters.3=log4cplus::spi::LogLevelRangeFilter
log4cplus.appender.File.filters.3.LogLevelMin=WARN
log4cplus.appender.File.filters.3.LogLevelMax=ERROR
log4cplus.appender.File.filters.4=log4cplus::spi::NDCMatchFilter
log4cplus.appender.File.filters.4.NDCToMatch=none
log4cplus.appender.File.filters.5=log4cplus::spi::MDCMatchFilter
log4cplus.appender.File.filters.5.MDCKeyToMatch=user
log4cplus.appender.File.filters.5.MDCValueToMatch=ann
log4cplus.appender.File.filters.6=log4cplus::spi::DenyAllFilter
log4cplus.appender.Async=log4cplus::AsyncAppender
log4cplus.appender.Async.QueueLimit=5000
log4cplus.appender.Async.Appender=log4cplus::FileAppender
log4cplus.appender.Async.Appender.File=async.log
log4cplus.appender.Async.Appender.ImmediateFlush=false
log4cplus.appender.Async.Appender.layout=log4cplus::TTCCLayout
log4cplus.appender.Async.Appender.layout.DateFormat=%y/%j %I %p %U %w
log4cplus.appender.Async.Appender.layout.Use_gmtime=true
log4cplus.appender.Rolling=log4cplus::RollingFileAppender
log4cplus.appender.Rolling.File=rolling.log
log4cplus.appender.Rolling.MaxFileSize=200KB
log4cplus.appender.Rolling.MaxBackupIndex=3
log4cplus.appender.Rolling.UseLockFile=true
log4cplus.appender.Rolling.LockFile=rolling.lock
log4cplus.appender.Rolling.layout=log4cplus::SimpleLayout
log4cplus.appender.Daily=log4cplus::DailyRollingFileAppender
log4cplus.appender.Daily.File=daily.log
log4cplus.appender.Daily.Schedule=TWICE_DAILY
log4cplus.appender.Hourly=log4cplus::DailyRollingFileAppender
log4cplus.appender.Hourly.File=hourly.log
log4cplus.appender.Hourly.Schedule=HOURLY
log4cplus.appender.Timed=log4cplus::TimeBasedRollingFileAppender
log4cplus.appender.Timed.FilenamePattern=%d{yyyy-MM-dd}.log
log4cplus.appender.Pooled=log4cplus::FileAppender
log4cplus.appender.Pooled.File=pooled.log
log4cplus.appender.Pooled.AsyncAppend=true
log4cplus.appender.Pooled.ImmediateFlush=false
)";

static const LogLevel Levels[] = {TRACE_LOG_LEVEL, DEBUG_LOG_LEVEL,
                                  INFO_LOG_LEVEL,  WARN_LOG_LEVEL,
                                  ERROR_LOG_LEVEL, FATAL_LOG_LEVEL};

static spi::InternalLoggingEvent makeEvent(Draw &Random, const char *Name,
                                           int64_t Seconds) {
  return {Name,
          Levels[Random.below(6)],
          getNDC().get(),
          getMDC().getContext(),
          Random.text(1 + Random.below(12)),
          "first",
          "second",
          helpers::time_from_parts(Seconds, Random.below(1000000)),
          "folder/" + Random.word() + ".cpp",
          static_cast<int>(Random.below(900)),
          Random.word()};
}

static void write(int Count) {
  static const char *Names[] = {"a",        "a.b",  "a.b.c.d",
                                "rolled.e", "pool", "pool.f"};
  Draw Random(1);
  for (int Number = 0; Number < Count; ++Number) {
    NDCContextCreator Outer("outer" + std::to_string(Number % 7));
    if (Random.below(3) == 0)
      getNDC().push(Random.word());
    getMDC().put("user", Random.below(2) == 0 ? "ann" : "bob");
    const char *Name = Names[Random.below(6)];
    Logger::getInstance(Name).log(
        makeEvent(Random, Name, 1000000000 + Number * 977));
    if (getNDC().getDepth() > 1)
      getNDC().pop();
  }
  // Far in the future, every message starts a new file.
  for (int Number = 0; Number < 6; ++Number)
    Logger::getInstance("rolled.times")
        .log(makeEvent(Random, "rolled.times", 7000000000));
  getNDC().remove();
  getMDC().remove("user");
  getMDC().clear();
}

static void addFile(const char *Path, bool Sort, Checksum &Sum) {
  std::ifstream File(Path);
  std::vector<std::string> Lines;
  for (std::string Line; std::getline(File, Line);)
    Lines.push_back(Line);
  if (Sort)
    std::sort(Lines.begin(), Lines.end());
  Sum.add(static_cast<uint64_t>(Lines.size()));
  for (const std::string &Line : Lines)
    Sum.add(Line);
}

static void useFiles(int Count, Checksum &Sum) {
  std::istringstream Text(Settings);
  PropertyConfigurator Configurator(
      Text, Logger::getDefaultHierarchy(),
      PropertyConfigurator::fRecursiveExpansion |
          PropertyConfigurator::fShadowEnvironment);
  Configurator.configure();
  Sum.add(static_cast<uint64_t>(Configurator.getProperties().size()));
  write(Count);
  for (Logger &Each : Logger::getCurrentLoggers())
    Sum.add(Each.getName());
  helpers::FileInfo About;
  Sum.add(helpers::getFileInfo(&About, "rolling.log"));
  Logger::shutdown();
}

// Uses all layouts and appenders without a configuration.
static void useAppenders(Checksum &Sum) {
  Draw Random(2);
  thread::setCurrentThreadName("thread");
  thread::setCurrentThreadName2("number");
  Logger Used = Logger::getInstance("used");
  Used.setAdditivity(false);
  Used.setLogLevel(ALL_LOG_LEVEL);
  SharedAppenderPtr Console(new ConsoleAppender(false, true));
  Console->setName("console");
  Console->setLayout(std::unique_ptr<Layout>(
      new PatternLayout("%-6p|%.3c|%8.12m|%t|%T|%E{LC_ALL}|%z%n")));
  Console->addFilter([](const spi::InternalLoggingEvent &Event) {
    return Event.getMessage().size() > 9 ? spi::NEUTRAL : spi::ACCEPT;
  });
  Console->addFilter(spi::FilterPtr(new spi::LogLevelMatchFilter));
  Used.addAppender(Console);
  SharedAppenderPtr Called(new CallbackAppender(
      [](void *Cookie, const char *Message, const char *Name, int Level,
         const char *Thread, const char *, unsigned long long, unsigned long,
         const char *, const char *Function, int) {
        Checksum &Sum = *static_cast<Checksum *>(Cookie);
        Sum.add(Message);
        Sum.add(Name);
        Sum.add(Level);
        Sum.add(Thread);
        Sum.add(Function);
      },
      &Sum));
  Called->setName("called");
  Used.addAppender(Called);
  for (int Round = 0; Round < 30; ++Round) {
    Used.log(Levels[Random.below(6)], Random.text(2), "file.cpp", Round, "f");
    LOG4CPLUS_WARN(Used, "warning " << Round << ' ' << Random.word());
    LOG4CPLUS_DEBUG_FMT(Used, "%d of %s", Round, Random.text(30).c_str());
    LOG4CPLUS_TRACE_METHOD(Used, "method");
    Used.assertion(Round % 3 != 0, "asserted");
  }
  Sum.add(static_cast<uint64_t>(Used.getAllAppenders().size()));
  Sum.add(bool(Used.getAppender("called")));
  Sum.add(Used.getParent().getName());
  Sum.add(Console->isClosed());
  Used.removeAppender("called");
  Used.removeAppender(Console);
  Used.removeAllAppenders();
  Used.closeNestedAppenders();
  SharedAppenderPtr Nested(new NullAppender);
  Used.addAppender(SharedAppenderPtr(new AsyncAppender(Nested, 10)));
  Used.addAppender(
      SharedAppenderPtr(new FileAppender("absent/folder/file.log")));
  Used.addAppender(SharedAppenderPtr(
      new RollingFileAppender("small.log", 1, 0, false, true)));
  for (DailyRollingFileSchedule Schedule : {MONTHLY, WEEKLY, DAILY, MINUTELY})
    Used.addAppender(SharedAppenderPtr(new DailyRollingFileAppender(
        "by" + std::to_string(Schedule) + ".log", Schedule, true, 2, false,
        true, Schedule == DAILY ? "%d" : "")));
  Used.addAppender(SharedAppenderPtr(new TimeBasedRollingFileAppender(
      "timed.log", "old/%d{YYYY-ww,aux}.%d{MMM EEE hh mm ss aa z}.log", 2, true,
      true, true, true)));
  for (int Round = 0; Round < 5; ++Round)
    Used.log(makeEvent(Random, "used", 7000000000 + Round));
  BasicConfigurator::doConfigure(Logger::getDefaultHierarchy(), true);
  LOG4CPLUS_ERROR_STR(Logger::getRoot(), "error");
}

static void useHierarchy(Checksum &Sum) {
  Hierarchy Tree;
  Draw Random(3);
  for (int Round = 0; Round < 300; ++Round) {
    std::string Name = Random.word().substr(0, 2);
    while (Random.below(3) != 0)
      Name += '.' + Random.word().substr(0, 1);
    Logger Made = Tree.getInstance(Name);
    if (Random.below(4) == 0)
      Made.setLogLevel(Levels[Random.below(6)]);
    Sum.add(Made.getChainedLogLevel());
    Sum.add(Made.isEnabledFor(INFO_LOG_LEVEL));
    Sum.add(Made.getParent().getName());
  }
  for (const char *Level : {"WARN", "OFF", "none"})
    Tree.disable(Level);
  Tree.disableDebug();
  Tree.disableInfo();
  Sum.add(Tree.isDisabled(INFO_LOG_LEVEL));
  Tree.disableAll();
  Tree.enableAll();
  {
    HierarchyLocker Locked(Tree);
    SharedAppenderPtr None(new NullAppender);
    Logger Made = Locked.getInstance("locked");
    Locked.addAppender(Made, None);
    Locked.resetConfiguration();
  }
  Sum.add(Tree.exists("locked"));
  Sum.add(static_cast<uint64_t>(Tree.getCurrentLoggers().size()));
  Tree.resetConfiguration();
  Tree.shutdown();
  Tree.clear();
}

static void useHelpers(Checksum &Sum) {
  Draw Random(4);
  std::istringstream Text(" a = 1\n! no\n#no\nb:x\nc=-3\nd=true\ninclude none\n"
                          "e.f=2\ne.g=h\nlong=12345678901\nlines=1\\\n2\n");
  helpers::Properties Values(Text);
  for (const std::string &Name : Values.propertyNames()) {
    int Int = 0;
    unsigned Unsigned = 0;
    long Long = 0;
    unsigned long UnsignedLong = 0;
    bool Bool = false;
    std::string String;
    Sum.add(Values.getInt(Int, Name) + 2 * Values.getUInt(Unsigned, Name) +
            4 * Values.getLong(Long, Name) +
            8 * Values.getULong(UnsignedLong, Name) +
            16 * Values.getBool(Bool, Name) +
            32 * Values.getString(String, Name));
    Sum.add(Name + String);
    Sum.add(static_cast<int64_t>(Int + Long + Bool));
    Sum.add(static_cast<uint64_t>(Unsigned + UnsignedLong));
  }
  Values.setProperty("new", "value");
  Sum.add(Values.removeProperty("a"));
  Sum.add(Values.exists("a"));
  Sum.add(Values.getProperty("none", "default") + Values.getProperty("new"));
  Sum.add(static_cast<uint64_t>(Values.getPropertySubset("e.").size()));
  std::vector<std::string> Words;
  helpers::tokenize(Random.text(40), ' ', std::back_inserter(Words), false);
  std::string Joined;
  helpers::join(Joined, Words.begin(), Words.end(), ", ");
  Sum.add(helpers::toUpper(Joined) + helpers::toLower("ABC"));
  Sum.add(helpers::convertIntegerToString(-9223372036854775807 - 1));
  Sum.add(helpers::tostring(helpers::towstring(Joined)));
  helpers::snprintf_buf Buffer;
  Sum.add(Buffer.print("%s %5.2f", Joined.c_str(), 2.5));
  for (const char *Format :
       {"%A %B %c %d %D", "%H:%M:%S %q %Q", "%s %% %y %Y %Z", "%e %F %G %T"})
    for (int64_t Seconds : {0, 951782399, 2000000000})
      Sum.add(helpers::getFormattedTime(
          Format, helpers::time_from_parts(Seconds, 123456), true));
  for (int Round = 0; Round < 200; ++Round) {
    helpers::SocketBuffer Sent(LOG4CPLUS_MAX_MESSAGE_SIZE);
    helpers::convertToBuffer(Sent, makeEvent(Random, "sent", Round * 999983),
                             "server");
    helpers::SocketBuffer Frame(LOG4CPLUS_MAX_MESSAGE_SIZE);
    Frame.appendInt(static_cast<unsigned>(Sent.getSize()));
    Frame.appendBuffer(Sent);
    Sum.add(std::string_view(Frame.getBuffer(), Frame.getSize()));
    helpers::SocketBuffer Received(Sent.getSize());
    std::copy_n(Sent.getBuffer(), Sent.getSize(), Received.getBuffer());
    const spi::InternalLoggingEvent Event = helpers::readFromBuffer(Received);
    Sum.add(Event.getMessage() + Event.getFile() + Event.getThread());
    Sum.add(Event.getLine());
  }
}

static void useLevels(Checksum &Sum) {
  LogLevelManager &Manager = getLogLevelManager();
  Manager.pushToStringMethod([](LogLevel Level) -> const std::string & {
    static const std::string Own = "OWN", None;
    return Level == 12345 ? Own : None;
  });
  Manager.pushFromStringMethod([](const std::string &Name) {
    return Name == "OWN" ? 12345 : NOT_SET_LOG_LEVEL;
  });
  for (LogLevel Level : {OFF_LOG_LEVEL, 12345, 7, TRACE_LOG_LEVEL})
    Sum.add(Manager.toString(Level));
  for (const char *Name : {"OWN", "ALL", "OFF", "fatal", "none"})
    Sum.add(Manager.fromString(Name));
}

static void useThreads(Checksum &Sum) {
  struct Worker : thread::AbstractThread {
    thread::Semaphore &Free;
    int Done = 0;
    explicit Worker(thread::Semaphore &Free) : Free(Free) {}
    void run() override {
      thread::SemaphoreGuard Guard(Free);
      thread::SignalsBlocker Blocker;
      thread::yield();
      getNDC().push("thread");
      Done = static_cast<int>(getNDC().getDepth());
      threadCleanup();
    }
  };
  thread::Semaphore Free(2, 2);
  thread::SharedMutex Shared;
  for (int Round = 0; Round < 4; ++Round) {
    helpers::SharedObjectPtr<Worker> Each(new Worker(Free));
    Each->start();
    Each->join();
    thread::SharedMutexReaderGuard Reader(Shared);
    Sum.add(Each->Done);
    Sum.add(Each->isRunning());
  }
  thread::SharedMutexWriterGuard Writer(Shared);
  thread::ManualResetEvent Event;
  Sum.add(Event.timed_wait(1));
  Event.signal();
  Event.wait();
  Event.reset();
}

// Uses the interface for C programs.
static void useC(Checksum &Sum) {
  void *Started = log4cplus_initialize();
  Sum.add(log4cplus_str_configure("log4cplus.rootLogger=WARN, A\n"
                                  "log4cplus.appender.A=log4cplus::"
                                  "NullAppender\n"));
  Sum.add(log4cplus_basic_configure());
  Sum.add(log4cplus_file_configure("absent"));
  Sum.add(log4cplus_add_log_level(4321, "LEVEL"));
  Sum.add(log4cplus_logger_exists("c"));
  Sum.add(log4cplus_logger_is_enabled_for(nullptr, L4CP_INFO_LOG_LEVEL));
  Sum.add(log4cplus_logger_log("c", L4CP_ERROR_LOG_LEVEL, "%d", 5));
  Sum.add(log4cplus_logger_log_str("c", L4CP_ERROR_LOG_LEVEL, "text"));
  Sum.add(log4cplus_logger_force_log("c", 4321, "%d", 6));
  Sum.add(log4cplus_logger_force_log_str("c", L4CP_INFO_LOG_LEVEL, "text"));
  Sum.add(log4cplus_remove_log_level(4321, "LEVEL"));
  log4cplus_shutdown();
  Sum.add(log4cplus_deinitialize(Started));
}

int main(int, char **Arguments) {
  Initializer Start;
  Checksum Sum;
  useHelpers(Sum);
  useLevels(Sum);
  useHierarchy(Sum);
  useThreads(Sum);
  useFiles(std::atoi(Arguments[1]), Sum);
  for (const char *Path : {"logs/deep/file.log", "async.log", "rolling.log",
                           "rolling.log.1", "rolling.log.3"})
    addFile(Path, false, Sum);
  // Several threads write this file, so its lines have no fixed order.
  addFile("pooled.log", true, Sum);
  useAppenders(Sum);
  std::ofstream("watched.properties") << "log4cplus.rootLogger=OFF\n";
  {
    ConfigureAndWatchThread Watch("watched.properties", 60000);
  }
  useC(Sum);
  Sum.print("log4cplus");
}
