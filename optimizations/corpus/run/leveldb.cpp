// Writes, reads, compacts, damages and repairs databases with LevelDB.
#include "driver.h"
#include "helpers/memenv/memenv.h"
#include "leveldb/cache.h"
#include "leveldb/comparator.h"
#include "leveldb/db.h"
#include "leveldb/dumpfile.h"
#include "leveldb/env.h"
#include "leveldb/filter_policy.h"
#include "leveldb/table.h"
#include "leveldb/table_builder.h"
#include "leveldb/write_batch.h"

#include <cstdlib>
#include <memory>
#include <vector>

using namespace leveldb;

static std::string keyOf(uint32_t Number) {
  return "key" + std::to_string(1000000 + Number);
}

// Adds what a batch would do to a checksum.
struct Recorder : WriteBatch::Handler {
  Checksum &Sum;
  explicit Recorder(Checksum &Sum) : Sum(Sum) {}
  void Put(const Slice &Key, const Slice &Value) override {
    Sum.add(Key.ToString() + "=" + Value.ToString());
  }
  void Delete(const Slice &Key) override { Sum.add(Key.ToString()); }
};

static void write(DB &Data, Draw &Random, uint32_t Keys, Checksum &Sum) {
  for (uint32_t Round = 0; Round < Keys; ++Round) {
    const std::string Key = keyOf(Random.below(Keys));
    if (Random.below(5) == 0)
      Sum.add(Data.Delete(WriteOptions(), Key).ToString());
    else
      Sum.add(Data.Put(WriteOptions(), Key, Random.text(1 + Random.below(30)))
                  .ok());
    if (Round % 100 != 0)
      continue;
    WriteBatch Batch, More;
    for (int Index = 0; Index < 20; ++Index)
      Batch.Put(keyOf(Random.below(Keys)), Random.text(4));
    More.Delete(keyOf(Random.below(Keys)));
    Batch.Append(More);
    Recorder Record(Sum);
    Sum.add(Batch.Iterate(&Record).ok());
    WriteOptions Options;
    Options.sync = Round % 5000 == 0;
    Sum.add(Data.Write(Options, &Batch).ok());
    More.Clear();
  }
}

static void read(DB &Data, Draw &Random, uint32_t Keys, Checksum &Sum,
                 const Snapshot *Old) {
  ReadOptions Options;
  Options.verify_checksums = true;
  Options.snapshot = Old;
  for (uint32_t Round = 0; Round < Keys; ++Round) {
    std::string Value;
    const Status Found = Data.Get(Options, keyOf(Random.below(Keys)), &Value);
    Sum.add(Found.IsNotFound());
    Sum.add(Value);
  }
  std::unique_ptr<Iterator> Each(Data.NewIterator(Options));
  for (Each->SeekToFirst(); Each->Valid(); Each->Next())
    Sum.add(Each->key().ToString() + Each->value().ToString());
  int Left = 2000;
  for (Each->SeekToLast(); Each->Valid() && --Left > 0; Each->Prev())
    Sum.add(Each->key().ToString());
  for (uint32_t Round = 0; Round < 300; ++Round) {
    Each->Seek(keyOf(Random.below(Keys)));
    for (uint32_t Step = 0; Each->Valid() && Step < 12; ++Step) {
      Sum.add(Each->value().ToString());
      if (Random.below(3) != 0)
        Each->Next();
      else
        Each->Prev();
    }
  }
  Sum.add(Each->status().ToString());
}

// Ignores the results, which depend on the background thread's speed.
static void askForSizes(DB &Data, uint32_t Keys) {
  std::string Value;
  for (const char *Name :
       {"leveldb.stats", "leveldb.sstables", "leveldb.unknown",
        "leveldb.num-files-at-level0", "leveldb.approximate-memory-usage"})
    Data.GetProperty(Name, &Value);
  const std::string Low = keyOf(0), High = keyOf(Keys / 2);
  const Range Half(Low, High);
  uint64_t Size = 0;
  Data.GetApproximateSizes(&Half, 1, &Size);
}

static void useDatabase(Options Settings, const std::string &Name,
                        uint32_t Keys, Checksum &Sum) {
  Draw Random(Keys);
  for (int Opening = 0; Opening < 3; ++Opening) {
    DB *Opened = nullptr;
    Settings.create_if_missing = Opening == 0;
    Settings.reuse_logs = Opening == 2;
    Sum.add(DB::Open(Settings, Name, &Opened).ToString());
    std::unique_ptr<DB> Data(Opened);
    if (!Data)
      return;
    // A database in memory has no lock.
    if (DB *Second = nullptr; Settings.env == Env::Default())
      Sum.add(DB::Open(Settings, Name, &Second).ok());
    write(*Data, Random, Keys, Sum);
    const Snapshot *Old = Data->GetSnapshot();
    write(*Data, Random, Keys / 2, Sum);
    read(*Data, Random, Keys, Sum, Old);
    Data->ReleaseSnapshot(Old);
    read(*Data, Random, Keys, Sum, nullptr);
    askForSizes(*Data, Keys);
    const std::string Low = keyOf(Keys / 4), High = keyOf(Keys / 2);
    const Slice Begin(Low), End(High);
    Data->CompactRange(&Begin, &End);
    if (Opening == 1)
      Data->CompactRange(nullptr, nullptr);
    read(*Data, Random, Keys, Sum, nullptr);
  }
  Settings.error_if_exists = true;
  DB *Wrong = nullptr;
  Sum.add(DB::Open(Settings, Name, &Wrong).IsInvalidArgument());
}

// Removes the file that lists the tables, and repairs the database without it.
static void repair(const Options &Settings, const std::string &Name,
                   Checksum &Sum) {
  std::vector<std::string> Files;
  Env &Place = *Settings.env;
  Sum.add(Place.GetChildren(Name, &Files).ok());
  for (const std::string &File : Files) {
    const std::string Path = Name + "/" + File;
    if (File.rfind("MANIFEST", 0) == 0)
      Place.RemoveFile(Path);
    WritableFile *Out = nullptr;
    if (Place.NewWritableFile(Name + ".dump", &Out).ok()) {
      DumpFile(&Place, Path, Out);
      Out->Close();
      delete Out;
    }
  }
  Sum.add(RepairDB(Name, Settings).ToString());
  DB *Opened = nullptr;
  Sum.add(DB::Open(Settings, Name, &Opened).ok());
  if (std::unique_ptr<DB> Data(Opened); Data) {
    Draw Random(3);
    read(*Data, Random, 500, Sum, nullptr);
  }
  Sum.add(DestroyDB(Name, Settings).ToString());
}

// Writes a table without a database.
static void useTable(const Options &Settings, Checksum &Sum) {
  Env &Place = *Settings.env;
  WritableFile *Out = nullptr;
  Sum.add(Place.NewWritableFile("table", &Out).ok());
  TableBuilder Builder(Settings, Out);
  Draw Random(7);
  for (uint32_t Number = 0; Number < 5000; ++Number)
    Builder.Add(keyOf(Number * 3), Random.text(5));
  Sum.add(Builder.Finish().ok());
  Sum.add(Builder.NumEntries() + Builder.FileSize());
  Out->Close();
  delete Out;
  uint64_t Size = 0;
  RandomAccessFile *In = nullptr;
  Sum.add(Place.GetFileSize("table", &Size).ok() &&
          Place.NewRandomAccessFile("table", &In).ok());
  Table *Opened = nullptr;
  Sum.add(Table::Open(Settings, In, Size, &Opened).ToString());
  std::unique_ptr<RandomAccessFile> File(In);
  std::unique_ptr<Table> Made(Opened);
  std::unique_ptr<Iterator> Each(Made->NewIterator(ReadOptions()));
  for (Each->Seek(keyOf(900)); Each->Valid(); Each->Next())
    Sum.add(Each->value().ToString());
  Sum.add(Made->ApproximateOffsetOf(keyOf(7000)));
}

static void useCache(Checksum &Sum) {
  std::unique_ptr<Cache> Kept(NewLRUCache(200));
  Draw Random(9);
  static int Values[400];
  for (int Round = 0; Round < 20000; ++Round) {
    const std::string Key = keyOf(Random.below(400));
    Cache::Handle *Found = Kept->Lookup(Key);
    Sum.add(Found != nullptr);
    if (!Found)
      Found = Kept->Insert(Key, &Values[Round % 400], 1,
                           [](const Slice &, void *) {});
    else
      Sum.add(static_cast<int64_t>(static_cast<int *>(Kept->Value(Found)) -
                                   Values));
    Kept->Release(Found);
    if (Round % 50 == 0)
      Kept->Erase(keyOf(Random.below(400)));
  }
  Sum.add(static_cast<uint64_t>(Kept->TotalCharge()));
  Kept->Prune();
}

int main(int, char **Arguments) {
  const auto Keys = static_cast<uint32_t>(std::atoi(Arguments[1]));
  Checksum Sum;
  std::unique_ptr<const FilterPolicy> Filter(NewBloomFilterPolicy(10));
  std::unique_ptr<Cache> Blocks(NewLRUCache(1 << 20));
  Options Settings;
  Settings.compression = kNoCompression;
  Settings.write_buffer_size = 128 << 10;
  Settings.max_file_size = 1 << 20;
  Settings.filter_policy = Filter.get();
  Settings.block_cache = Blocks.get();
  Settings.paranoid_checks = true;
  useDatabase(Settings, "database", Keys, Sum);
  repair(Settings, "database", Sum);
  useTable(Settings, Sum);
  std::unique_ptr<Env> Memory(NewMemEnv(Env::Default()));
  Settings.env = Memory.get();
  Settings.filter_policy = nullptr;
  Settings.block_cache = nullptr;
  Settings.block_restart_interval = 4;
  useDatabase(Settings, "/memory", Keys / 4, Sum);
  useTable(Settings, Sum);
  useCache(Sum);
  Sum.print("leveldb");
}
