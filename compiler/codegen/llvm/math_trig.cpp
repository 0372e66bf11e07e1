// SPDX-License-Identifier: Apache-2.0
// sin, cos and tan. Coefficients: scripts/minimax.
#include <llvm/IR/Module.h>

#include "compiler/codegen/llvm/math_parts.h"

namespace einc {
namespace {

// sin(r) / r^3 - 1 / r^2 and (cos(r) - 1 + r^2 / 2) / r^4 in r^2: in float for |r| < 0.84, which leaves room for the reduction's
// rounding (2^-27.1 and 2^-32.2), in double on [-pi/4, pi/4] (2^-57.9 and 2^-64).
constexpr double kSin32[] = {-0.166666493, 0.00833182596, -0.000194710607};
constexpr double kSin64[] = {-0.1666666666666663,   0.0083333333333218407,  -0.00019841269829358571,
                             2.7557313538554341e-6, -2.5050734399872692e-8, 1.5895434146411586e-10};
constexpr double kCos32[] = {0.0416666381, -0.00138869369, 2.43896829e-5};
constexpr double kCos64[] = {0.041666666666666602,   -0.0013888888888874441, 2.4801587289636317e-5,
                             -2.7557314387473928e-7, 2.0875727060114306e-9,  -1.1359802563253344e-11};
constexpr Coefficients kSin{kSin32, kSin64}, kCos{kCos32, kCos64};

// x = (quadrant + 4 k) * pi / 2 + rest with |rest| <= pi / 4.
struct Turned {
  Real rest;
  Bits quadrant;
};

constexpr double kHalfPi = 1.5707963267948966;
constexpr double kRounder = 0x1.8p52;

Bits low_word(Bits bits) {
  llvm::Type* type = bits.value->getType()->getWithNewBitWidth(32);
  return {bits.builder, bits.builder->CreateTrunc(bits.value, type)};
}

// A float is reduced in double: x = 2^s * y with s in {0, 24, 48, 72, 96}. Below 2^47, s is 0; above, y is an integer below
// 2^47, so that multiples of 4 may be taken from 2^s * 2 / pi, which then needs two doubles only.
Turned turn_float(Real x) {
  const Real wide = to_double(x);
  const Mask below[] = {wide < 0x1p47, wide < 0x1p71, wide < 0x1p95, wide < 0x1p119};
  const auto by_range = [&](double a, double b, double c, double d, double e) {
    return select(below[0], a, select(below[1], b, select(below[2], c, select(below[3], wide.constant(d), e))));
  };
  const Real y = wide * by_range(1, 0x1p-24, 0x1p-48, 0x1p-72, 0x1p-96);
  const Real high = by_range(0.6366197723675814, -0.5691182564096516, 0.08267188988231296, 0.1536837791107848, 1.9578379245607584);
  const Real low =
      by_range(-3.935735335036497e-17, -9.117048055938418e-18, 2.8658837463471963e-18, 1.1892889840965575e-17, 7.769584704001829e-17);
  const Real product = y * high;
  const Real shifted = product + kRounder;
  const Real turn = (product - (shifted - kRounder)) + fma(y, low, fma(y, high, -product));
  return {to_float(turn * kHalfPi), low_word(shifted.bits())};
}

// Row w: 2^(20 w) * 2 / pi mod 4 as a sum of four doubles.
constexpr size_t kRows = 49;
constexpr double kTwoOverPi[kRows][4] = {
    {0.6366197723675814, -3.935735335036497e-17, -2.1442872565786008e-33, 1.6107127853188224e-49},
    {0.21443010897439677, 6.369078400411077e-18, 3.2963609288943647e-34, 1.1024056825358698e-50},
    {2.265947937069853, -1.9487414564588526e-16, 4.15973438978936e-33, 2.175345591478396e-49},
    {2.6240609579538843, 1.9234036893648733e-16, -1.1512685511326754e-32, 5.076137256378127e-49},
    {3.3430474523609095, -6.404466966325114e-17, 3.839205378856208e-34, 1.438401992460529e-50},
    {3.3254067929721365, -8.91340769098951e-17, 4.2812383551481994e-33, 3.05435294976288e-49},
    {1.7533475508910081, 4.945359371759062e-17, -2.4392277228547982e-34, -1.5344342211616349e-50},
    {2.1615230897960065, -1.458965661502665e-18, 2.064837204056875e-35, 4.802784311998969e-52},
    {1.2354059373013278, 5.0950457647316266e-17, 8.532979878662327e-34, 1.6800657131910823e-50},
    {1.0161116771002907, -5.917920470621742e-17, -5.364870465740766e-33, -4.643287987907161e-50},
    {2.3179271143706237, 2.3805952160694473e-17, 5.537233315292012e-34, -3.856597711622377e-50},
    {2.741878291151303, 9.560718034860683e-17, -5.2820643892502376e-33, -1.2860727900198951e-49},
    {3.771022268671211, 3.1974408518196914e-17, 1.933316664944157e-33, -5.582850001794793e-50},
    {3.446394183706492, 1.9431032667249989e-16, 4.840262212843303e-33, 4.972232786546721e-50},
    {2.227574218733957, 1.274433148162463e-16, -3.6267788142659027e-34, -2.918025995818489e-51},
    {0.8639831777135734, 8.516308978595715e-18, 3.4536789077520334e-34, 9.013522177802167e-51},
    {0.02455418790652278, 1.5716943815562158e-18, -6.677128753021848e-35, -3.390363894770571e-51},
    {2.9321382700307477, 2.5950081108094513e-17, -2.8276701056136775e-34, -2.0561488156699424e-50},
    {1.8186357612993729, -4.590714157462198e-17, -1.934068093039451e-33, 7.6008324938137915e-50},
    {1.8120402511659202, -7.698205328387589e-17, -3.908823442723616e-33, 2.8671632736659594e-49},
    {1.9184065558140408, -1.0396356234456101e-16, 9.461214255788543e-34, -4.6645498826507757e-51},
    {3.0726692635872843, -9.382646588825811e-18, -1.9077311373385826e-34, 2.9796006176514184e-51},
    {3.245735300229337, -6.567450632680072e-17, -2.2392748472692593e-33, 1.5371868652628635e-49},
    {0.13817327742097626, 8.336288509620007e-18, -7.556280024900576e-34, -3.3082894698994527e-50},
    {1.1825449776166452, 2.098179600458306e-18, -3.1428272666860984e-35, 1.3820409653673834e-51},
    {0.2824493513930238, 2.7315981727176176e-17, -1.5007194830611671e-33, -1.9420628599714042e-50},
    {1.6110862913478678, 1.699864614622169e-17, -1.1641258008797245e-33, -1.8289322185385697e-50},
    {2.419036381895783, -3.623433141027161e-17, 1.593384749219663e-33, 1.3363340269966663e-49},
    {3.493182752709094, 4.614507499656002e-17, 2.2614429425635426e-33, 6.414496730618777e-50},
    {3.5981046911812897, -9.878040351714872e-18, 4.842625249227784e-34, 9.344642155349743e-52},
    {2.2246601120465233, 6.0690703087687e-17, 6.157403977292624e-33, 4.2588666683108084e-50},
    {1.2016492952297737, -5.72690591774807e-17, -1.5976448628475897e-36, -7.611655322793144e-53},
    {0.6113948551337428, 3.2051665461021856e-18, -7.81940772565019e-35, -5.236674178479329e-51},
    {1.9716167195035226, -6.423899628605717e-18, -2.0241690482477157e-34, 5.2497463502628866e-51},
    {1.9732701256803864, -1.8419591191016427e-18, -8.775641107303387e-35, -4.0215795873711337e-51},
    {3.6953054368476628, -9.01516332019102e-17, -6.037474272988212e-33, -3.6116882934219353e-50},
    {0.5937479747445307, -1.1326197543405264e-17, -1.1043036108976403e-34, 4.586606918501064e-51},
    {1.8763657209810316, -1.0117625349321918e-16, -4.63656558876811e-33, -3.102951876716473e-50},
    {0.06224340608910254, -1.0233372197492725e-18, -3.984421546523662e-35, 1.6535086756769788e-51},
    {2.9417832867828295, -1.2731753806188816e-16, 5.287997749518421e-33, -3.645388983884229e-51},
    {3.351721592113984, -1.6525656610109604e-17, 1.2032554679689714e-33, -2.8985615296438144e-50},
    {2.820172512886481, -4.5937252844060003e-17, 1.9063657102419773e-33, 1.1892491257298405e-49},
    {1.2128724548484004, 1.0144198875655323e-16, -4.2028473521770305e-33, -6.964346371946159e-50},
    {0.9472151164563498, 5.4991475007014385e-17, -2.6032600893289305e-33, 1.3848733700947732e-49},
    {3.0379533335211826, -2.255602626723198e-17, 1.5256210540211053e-33, -1.6124911415009162e-50},
    {0.9546503075161987, 3.942821544584385e-17, -1.7476129096501472e-34, -7.588331567513646e-51},
    {3.4008541056368427, 1.0726992987837307e-16, -5.72342419055953e-34, 2.7855031041824703e-50},
    {1.9946722580313452, -1.743551833835402e-17, -1.0182966412702044e-34, -5.396998900592147e-51},
    {1.457637475785212, 2.0558554398611556e-17, 4.9571308478526475e-34, -1.196861860890493e-51},
};

Real load_column(const Real& like, Bits row, int column) {
  llvm::IRBuilderBase& builder = *like.builder;
  llvm::Module& module = *builder.GetInsertBlock()->getModule();
  llvm::GlobalVariable* table = module.getNamedGlobal("einc.two_over_pi");
  if (table == nullptr) {
    llvm::Constant* numbers = llvm::ConstantDataArray::get(builder.getContext(), llvm::ArrayRef(&kTwoOverPi[0][0], kRows * 4));
    table = new llvm::GlobalVariable(module, numbers->getType(), true, llvm::GlobalValue::PrivateLinkage, numbers, "einc.two_over_pi");
  }
  const Bits index = row * 4 + static_cast<uint64_t>(column);
  llvm::Value* address = builder.CreateGEP(builder.getDoubleTy(), table, index.value);
  if (!like.value->getType()->isVectorTy()) return {like.builder, builder.CreateLoad(like.value->getType(), address)};
  return {like.builder, builder.CreateMaskedGather(like.value->getType(), address, llvm::Align(8))};
}

// The nearest integer, for x >= 0 of any size.
Real nearest(Real x) { return select(x < 0x1p52, (x + 0x1p52) - 0x1p52, x); }

// As turn_float, with s = 20 w and the factor from the table: past 2^72, y is an integer below 2^73.
Turned turn_double(Real x) {
  const Bits above = (x.bits() >> 52) - (1023 + 52);
  const Bits row = ((above & ~arithmetic_shift(above, 63)) * 3277) >> 16;  // above / 20, or 0 below 0
  const Real y = x * as_real((1023 - row * 20) << 52, x);
  Real factor[4] = {x, x, x, x};
  for (int i = 0; i < 4; ++i) factor[i] = load_column(x, row, i);
  const TwoParts first = exact_product(y, factor[0]), second = exact_product(y, factor[1]), third = exact_product(y, factor[2]);
  // first.high may be huge; what is left of it modulo 4 and the other parts' integers make the quadrant.
  const TwoParts a = exact_sum(first.high - nearest(first.high * 0.25) * 4.0, first.low);
  const Real a_shifted = a.high + kRounder;
  const TwoParts b = exact_sum(a.high - (a_shifted - kRounder), second.high);
  const Real b_shifted = b.high + kRounder;
  const TwoParts c = exact_sum(second.low, third.high);
  const TwoParts d = exact_sum(b.high - (b_shifted - kRounder), c.high);
  const Real turn = d.high + (a.low + b.low + d.low + (c.low + third.low + y * factor[3]));
  return {turn * kHalfPi, low_word(a_shifted.bits()) + low_word(b_shifted.bits())};
}

// |sin| or |cos| of the rest with the sign that the quadrant gives, and that of `sign`'s top bit.
Real from_quadrant(const Turned& turned, uint64_t first_quadrant, Bits sign) {
  const Real r = turned.rest, z = r * r;
  const Real sine = fma(r * z, horner(z, kSin), r), cosine = fma(z * z, horner(z, kCos), fma(z, -0.5, 1.0));
  const Bits quadrant = turned.quadrant + first_quadrant;
  const Real magnitude = select((quadrant & 1) == 0, sine, cosine);
  llvm::IRBuilderBase& builder = *r.builder;
  const Bits wide{r.builder, builder.CreateZExt(quadrant.value, sign.value->getType())};
  const int top = r.is_double() ? 63 : 31;
  return as_real(magnitude.bits() ^ ((wide >> 1) << top) ^ sign, r);
}

Turned turn(Real x) { return x.is_double() ? turn_double(x) : turn_float(x); }

}  // namespace

Real math_sin(Real x) {
  const Real a = absolute(x);
  return from_quadrant(turn(a), 0, x.bits() ^ a.bits());
}

// sine / cosine, or -cosine / sine in odd quadrants.
Real math_tan(Real x) {
  const Real a = absolute(x);
  const Turned turned = turn(a);
  const Real r = turned.rest, z = r * r;
  const Real sine = fma(r * z, horner(z, kSin), r), cosine = fma(z * z, horner(z, kCos), fma(z, -0.5, 1.0));
  const Mask even = (turned.quadrant & 1) == 0;
  const Real quotient = select(even, sine, -cosine) / select(even, cosine, sine);
  return as_real(quotient.bits() ^ (x.bits() ^ a.bits()), x);
}

Real sin_of_half_turns(Real x) {
  constexpr double kPi = 3.141592653589793;
  const Real a = absolute(x);
  const Mask small = a <= 0.25;
  const Real r = select(small, a, 0.5 - a) * kPi, z = r * r;
  const Real sine = fma(r * z, horner(z, kSin), r), cosine = fma(z * z, horner(z, kCos), fma(z, -0.5, 1.0));
  return with_sign_of(select(small, sine, cosine), x);
}

Real math_cos(Real x) { return from_quadrant(turn(absolute(x)), 1, x.bits().constant(0)); }

}  // namespace einc
