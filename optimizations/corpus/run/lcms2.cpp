// Makes, writes and reads colour profiles with Little CMS, and transforms pixels with
// them. The program's argument is the number of pixels.
#include "driver.h"

// C++17 has no keyword `register`.
#define CMS_NO_REGISTER_KEYWORD
#include "lcms2.h"

#include <cstdlib>
#include <cstring>
#include <vector>

static const cmsCIExyY White = {0.3127, 0.3290, 1.0};

static void logError(cmsContext, cmsUInt32Number Code, const char *Text) {
  std::printf("error %u: %s\n", Code, Text);
}

static void addAll(Checksum &Sum, const void *Bytes, size_t Size) {
  Sum.add(std::string_view(static_cast<const char *>(Bytes), Size));
}

// Writes a profile, adds its bytes and its texts, and returns the profile as read.
static cmsHPROFILE readAgain(cmsHPROFILE Profile, Checksum &Sum) {
  cmsUInt32Number Size = 0;
  cmsSaveProfileToMem(Profile, nullptr, &Size);
  std::vector<char> Bytes(Size);
  Sum.add(cmsSaveProfileToMem(Profile, Bytes.data(), &Size));
  // These bytes of the header are the time of day.
  std::memset(Bytes.data() + 24, 0, 12);
  addAll(Sum, Bytes.data(), Size);
  cmsCloseProfile(Profile);
  cmsHPROFILE Read = cmsOpenProfileFromMem(Bytes.data(), Size);
  for (cmsInfoType Info :
       {cmsInfoDescription, cmsInfoManufacturer, cmsInfoModel}) {
    char Text[100] = "";
    cmsGetProfileInfoASCII(Read, Info, "en", "US", Text, sizeof(Text));
    Sum.add(Text);
  }
  cmsMD5computeID(Read);
  cmsUInt8Number Id[16];
  cmsGetHeaderProfileID(Read, Id);
  addAll(Sum, Id, sizeof(Id));
  Sum.add(cmsGetProfileVersion(Read));
  for (cmsInt32Number Tag = 0; Tag < cmsGetTagCount(Read); ++Tag) {
    const cmsTagSignature Name =
        cmsGetTagSignature(Read, static_cast<cmsUInt32Number>(Tag));
    Sum.add(cmsReadTag(Read, Name) != nullptr);
    Sum.add(static_cast<unsigned>(cmsTagLinkedTo(Read, Name)));
  }
  for (cmsUInt32Number Intent = 0; Intent < 4; ++Intent) {
    Sum.add(cmsIsIntentSupported(Read, Intent, LCMS_USED_AS_INPUT));
    cmsCIEXYZ Black = {};
    Sum.add(cmsDetectBlackPoint(&Black, Read, Intent, 0));
    Sum.add(Black.Y);
    Sum.add(cmsDetectDestinationBlackPoint(&Black, Read, Intent, 0));
    Sum.add(Black.X);
  }
  return Read;
}

static void useCurves(Draw &Random, Checksum &Sum,
                      std::vector<cmsToneCurve *> &Curves) {
  for (int Type = 1; Type <= 8; ++Type) {
    const double Values[] = {2.2, 0.9, 0.1, 0.08, 0.04, 0.01, 0.02};
    Curves.push_back(cmsBuildParametricToneCurve(nullptr, Type, Values));
  }
  cmsUInt16Number Table[300];
  for (int Index = 0; Index < 300; ++Index)
    Table[Index] = static_cast<cmsUInt16Number>(Index * 218 + Random.below(30));
  Curves.push_back(cmsBuildTabulatedToneCurve16(nullptr, 300, Table));
  for (size_t Index = 0, Count = Curves.size(); Index < Count; ++Index) {
    cmsToneCurve *Curve = Curves[Index];
    Sum.add(cmsIsToneCurveMonotonic(Curve) + 2 * cmsIsToneCurveLinear(Curve) +
            4 * cmsIsToneCurveDescending(Curve));
    Sum.add(cmsGetToneCurveParametricType(Curve));
    Sum.add(cmsEstimateGamma(Curve, 0.1));
    cmsToneCurve *Reverse = cmsReverseToneCurve(Curve);
    cmsToneCurve *Joined = cmsJoinToneCurve(nullptr, Curve, Reverse, 200);
    Sum.add(cmsSmoothToneCurve(Joined, 0.5));
    for (int At = 0; At < 200; ++At) {
      const float X = static_cast<float>(At) / 199;
      Sum.add(static_cast<double>(cmsEvalToneCurveFloat(Curve, X)));
      Sum.add(static_cast<double>(cmsEvalToneCurveFloat(Reverse, X)));
      Sum.add(static_cast<int>(cmsEvalToneCurve16(
          Joined, static_cast<cmsUInt16Number>(At * 300))));
    }
    cmsFreeToneCurve(Joined);
    cmsFreeToneCurve(Reverse);
  }
}

static cmsInt32Number mixInks(const cmsUInt16Number In[],
                              cmsUInt16Number Out[],
                              void *) {
  const int Black = In[3] / 2;
  for (int Index = 0; Index < 3; ++Index)
    Out[Index] = static_cast<cmsUInt16Number>(65535 - (In[Index] + Black) / 2);
  return TRUE;
}

static cmsInt32Number separate(const cmsUInt16Number In[],
                               cmsUInt16Number Out[],
                               void *) {
  for (int Index = 0; Index < 3; ++Index)
    Out[Index] = static_cast<cmsUInt16Number>(65535 - In[Index]);
  Out[3] = static_cast<cmsUInt16Number>((65535 - In[0]) / 3);
  return TRUE;
}

static void writeTable(cmsHPROFILE Profile, cmsTagSignature Tag,
                       cmsUInt32Number In, cmsUInt32Number Out,
                       cmsUInt32Number Points, cmsSAMPLER16 Fill,
                       Checksum &Sum) {
  cmsPipeline *Table = cmsPipelineAlloc(nullptr, In, Out);
  cmsStage *Grid =
      cmsStageAllocCLut16bit(nullptr, Points, In, Out, nullptr);
  Sum.add(cmsStageSampleCLut16bit(Grid, Fill, nullptr, 0));
  // Version 4 of the format needs curves before and after the grid.
  for (cmsStage *Each : {cmsStageAllocToneCurves(nullptr, In, nullptr), Grid,
                         cmsStageAllocToneCurves(nullptr, Out, nullptr)})
    cmsPipelineInsertStage(Table, cmsAT_END, Each);
  Sum.add(cmsWriteTag(Profile, Tag, Table));
  cmsPipelineFree(Table);
}

static cmsHPROFILE makeInks(double Version, Checksum &Sum) {
  cmsHPROFILE Profile = cmsCreateProfilePlaceholder(nullptr);
  cmsSetProfileVersion(Profile, Version);
  cmsSetDeviceClass(Profile, cmsSigOutputClass);
  cmsSetColorSpace(Profile, cmsSigCmykData);
  cmsSetPCS(Profile, cmsSigLabData);
  writeTable(Profile, cmsSigAToB0Tag, 4, 3, 7, mixInks, Sum);
  writeTable(Profile, cmsSigBToA0Tag, 3, 4, 9, separate, Sum);
  cmsLinkTag(Profile, cmsSigBToA1Tag, cmsSigBToA0Tag);
  cmsMLU *Text = cmsMLUalloc(nullptr, 2);
  cmsMLUsetASCII(Text, "en", "US", "four inks");
  cmsMLUsetASCII(Text, "de", "DE", "vier Farben");
  Sum.add(cmsWriteTag(Profile, cmsSigProfileDescriptionTag, Text));
  Sum.add(cmsMLUtranslationsCount(Text));
  cmsMLUfree(Text);
  Sum.add(cmsWriteTag(Profile, cmsSigMediaWhitePointTag, cmsD50_XYZ()));
  return readAgain(Profile, Sum);
}

struct Layout {
  cmsUInt32Number Format;
  size_t Bytes; // Of a pixel.
};

// Transforms the same pixels between profiles and layouts.
static void transform(cmsHPROFILE From, Layout In, cmsHPROFILE To, Layout Out,
                      const std::vector<unsigned char> &Pixels,
                      cmsUInt32Number Intent, cmsUInt32Number Flags,
                      Checksum &Sum) {
  cmsHTRANSFORM Made = cmsCreateTransform(From, In.Format, To, Out.Format,
                                          Intent, Flags);
  Sum.add(Made != nullptr);
  if (Made == nullptr)
    return;
  const size_t Count = Pixels.size() / In.Bytes;
  std::vector<unsigned char> Result(Count * Out.Bytes);
  cmsDoTransform(Made, Pixels.data(), Result.data(),
                 static_cast<cmsUInt32Number>(Count));
  addAll(Sum, Result.data(), Result.size());
  cmsDeleteTransform(Made);
}

static void transformAll(cmsHPROFILE RGB, cmsHPROFILE Wide, cmsHPROFILE Lab,
                         cmsHPROFILE Gray, cmsHPROFILE Inks, Draw &Random,
                         size_t Count, Checksum &Sum) {
  std::vector<unsigned char> Pixels(Count * 4);
  for (unsigned char &Each : Pixels)
    Each = static_cast<unsigned char>(Random.below(256));
  const Layout RGB8 = {TYPE_RGB_8, 3}, BGRA = {TYPE_BGRA_8, 4};
  for (cmsUInt32Number Intent = 0; Intent < 4; ++Intent)
    for (cmsUInt32Number Flags :
         {0, cmsFLAGS_NOOPTIMIZE, cmsFLAGS_BLACKPOINTCOMPENSATION}) {
      transform(RGB, RGB8, Wide, {TYPE_RGB_16, 6}, Pixels, Intent, Flags, Sum);
      transform(RGB, BGRA, Lab, {TYPE_Lab_8, 3}, Pixels, Intent, Flags, Sum);
      transform(Inks, {TYPE_CMYK_8, 4}, RGB, RGB8, Pixels, Intent, Flags, Sum);
    }
  for (Layout Out : {Layout{TYPE_RGB_FLT, 12}, {TYPE_RGB_DBL, 24},
                     {TYPE_RGB_8_PLANAR, 3}, {TYPE_RGB_16_SE, 6},
                     {TYPE_BGR_8, 3}, {TYPE_ARGB_8, 4}, {TYPE_RGB_HALF_FLT, 6}})
    transform(Wide, {TYPE_RGB_16, 6}, RGB, Out, Pixels, 0, 0, Sum);
  for (Layout Out : {Layout{TYPE_CMYK_8, 4}, {TYPE_KYMC_8, 4},
                     {TYPE_CMYK_16, 8}, {TYPE_CMYK_8_REV, 4}})
    transform(RGB, RGB8, Inks, Out, Pixels, 1, 0, Sum);
  for (Layout Out : {Layout{TYPE_GRAY_8, 1}, {TYPE_GRAY_16, 2}})
    transform(RGB, RGB8, Gray, Out, Pixels, 0, 0, Sum);
  transform(Gray, {TYPE_GRAY_8, 1}, Lab, {TYPE_Lab_16, 6}, Pixels, 0, 0, Sum);
  cmsHTRANSFORM Proof = cmsCreateProofingTransform(
      RGB, TYPE_RGB_8, RGB, TYPE_RGB_8, Inks, 0, 1,
      cmsFLAGS_SOFTPROOFING | cmsFLAGS_GAMUTCHECK);
  std::vector<unsigned char> Result(Pixels.size());
  cmsDoTransform(Proof, Pixels.data(), Result.data(),
                 static_cast<cmsUInt32Number>(Count));
  addAll(Sum, Result.data(), Count * 3);
  cmsHPROFILE Link = cmsTransform2DeviceLink(Proof, 4.3, 0);
  Sum.add(cmsGetTagCount(Link));
  cmsCloseProfile(Link);
  cmsDeleteTransform(Proof);
}

static void useColours(Draw &Random, Checksum &Sum) {
  const cmsViewingConditions View = {{96.4, 100, 82.5}, 20, 60, 2, 1.0};
  cmsHANDLE Model = cmsCIECAM02Init(nullptr, &View);
  cmsHANDLE Gamut = cmsGBDAlloc(nullptr);
  for (int Round = 0; Round < 4000; ++Round) {
    const cmsCIELab One = {Random.below(1000) / 10.0,
                           Random.below(2000) / 10.0 - 100,
                           Random.below(2000) / 10.0 - 100};
    cmsCIELab Other = {One.L * 0.9, One.a + 3, One.b - 2};
    Sum.add(cmsDeltaE(&One, &Other) + cmsCIE94DeltaE(&One, &Other));
    Sum.add(cmsBFDdeltaE(&One, &Other) + cmsCMCdeltaE(&One, &Other, 2, 1));
    Sum.add(cmsCIE2000DeltaE(&One, &Other, 1, 1, 1));
    cmsCIEXYZ Point;
    cmsLab2XYZ(nullptr, &Point, &One);
    const cmsCIEXYZ Scaled = {Point.X * 100, Point.Y * 100, Point.Z * 100};
    cmsJCh Seen;
    cmsCIECAM02Forward(Model, &Scaled, &Seen);
    Sum.add(Seen.J);
    Sum.add(cmsDesaturateLab(&Other, 60, -60, 50, -50));
    Sum.add(Other.a);
    Sum.add(cmsGDBAddPoint(Gamut, &One));
  }
  Sum.add(cmsGDBCompute(Gamut, 0));
  const cmsCIELab Middle = {50, 10, 10};
  Sum.add(cmsGDBCheckPoint(Gamut, &Middle));
  cmsGBDFree(Gamut);
  cmsCIECAM02Done(Model);
  cmsCIExyY Warm;
  double Kelvin = 0;
  Sum.add(cmsWhitePointFromTemp(&Warm, 5000) &&
          cmsTempFromWhitePoint(&Kelvin, &Warm));
  Sum.add(Kelvin);
}

// Writes and reads a table of measurements in the format CGATS.
static void useMeasurements(Draw &Random, Checksum &Sum) {
  cmsHANDLE Table = cmsIT8Alloc(nullptr);
  cmsIT8SetSheetType(Table, "TEST");
  cmsIT8SetPropertyStr(Table, "DESCRIPTOR", "measured");
  cmsIT8SetPropertyDbl(Table, "NUMBER_OF_FIELDS", 4);
  cmsIT8SetPropertyDbl(Table, "NUMBER_OF_SETS", 500);
  const char *Names[] = {"SAMPLE_ID", "LAB_L", "LAB_A", "LAB_B"};
  for (int Index = 0; Index < 4; ++Index)
    cmsIT8SetDataFormat(Table, Index, Names[Index]);
  for (int Row = 0; Row < 500; ++Row) {
    const std::string Patch = "P" + std::to_string(Row);
    cmsIT8SetDataRowCol(Table, Row, 0, Patch.c_str());
    for (int Column = 1; Column < 4; ++Column)
      cmsIT8SetDataRowColDbl(Table, Row, Column, Random.below(9999) / 99.0);
  }
  cmsUInt32Number Size = 0;
  cmsIT8SaveToMem(Table, nullptr, &Size);
  std::vector<char> Text(Size);
  Sum.add(cmsIT8SaveToMem(Table, Text.data(), &Size));
  addAll(Sum, Text.data(), Size);
  cmsIT8Free(Table);
  cmsHANDLE Read = cmsIT8LoadFromMem(nullptr, Text.data(), Size - 1);
  for (int Row = 0; Row < 500; Row += 3)
    Sum.add(cmsIT8GetDataDbl(Read, ("P" + std::to_string(Row)).c_str(),
                             "LAB_A"));
  cmsIT8Free(Read);
}

static void writePostScript(cmsHPROFILE Profile, Checksum &Sum) {
  for (cmsPSResourceType Kind :
       {cmsPS_RESOURCE_CSA, cmsPS_RESOURCE_CRD}) {
    cmsIOHANDLER *Sized = cmsOpenIOhandlerFromNULL(nullptr);
    const cmsUInt32Number Size = cmsGetPostScriptColorResource(
        nullptr, Kind, Profile, 0, cmsFLAGS_NODEFAULTRESOURCEDEF, Sized);
    cmsCloseIOhandler(Sized);
    Sum.add(Size > 0);
  }
}

int main(int, char **Arguments) {
  const auto Count = static_cast<size_t>(std::atoi(Arguments[1]));
  Checksum Sum;
  Draw Random(1);
  cmsSetLogErrorHandler(logError);
  std::vector<cmsToneCurve *> Curves;
  useCurves(Random, Sum, Curves);
  const cmsCIExyYTRIPLE Primaries = {
      {0.64, 0.33, 1}, {0.21, 0.71, 1}, {0.15, 0.06, 1}};
  cmsToneCurve *const Three[] = {Curves[3], Curves[8], Curves[0]};
  cmsHPROFILE RGB = readAgain(cmsCreate_sRGBProfile(), Sum);
  cmsHPROFILE Wide =
      readAgain(cmsCreateRGBProfile(&White, &Primaries, Three), Sum);
  cmsHPROFILE Lab = readAgain(cmsCreateLab4Profile(nullptr), Sum);
  cmsHPROFILE Gray = readAgain(cmsCreateGrayProfile(&White, Curves[0]), Sum);
  cmsHPROFILE Inks = makeInks(4.3, Sum), Old = makeInks(2.1, Sum);
  transformAll(RGB, Wide, Lab, Gray, Inks, Random, Count, Sum);
  transformAll(Wide, RGB, Lab, Gray, Old, Random, Count / 4, Sum);
  Sum.add(cmsDetectTAC(Inks));
  Sum.add(cmsDetectRGBProfileGamma(RGB, 0.1));
  cmsHPROFILE Changed = cmsCreateBCHSWabstractProfile(
      9, 4, 1.1, 10, 5, 5000, 6000);
  cmsCloseProfile(readAgain(Changed, Sum));
  cmsHPROFILE Limit = cmsCreateInkLimitingDeviceLink(cmsSigCmykData, 250);
  cmsCloseProfile(readAgain(Limit, Sum));
  writePostScript(RGB, Sum);
  writePostScript(Inks, Sum);
  useColours(Random, Sum);
  useMeasurements(Random, Sum);
  for (cmsHPROFILE Each : {RGB, Wide, Lab, Gray, Inks, Old})
    cmsCloseProfile(Each);
  for (cmsToneCurve *Each : Curves)
    cmsFreeToneCurve(Each);
  Sum.print("lcms2");
}
