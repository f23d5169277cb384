// An expected number in fp32 before it is rounded to the type of its storage, and the interval of
// all correct numbers. Bounds.java has the same code and explains it.
#pragma once

struct Bounds {
  float expected;
  float low;
  float high;
};

static BRAID_INLINE bool isNan(float value) { return (asBits(value) & SIZE_MASK) > INFINITY_BITS; }
static BRAID_INLINE bool isFinite(float value) { return (asBits(value) & SIZE_MASK) < INFINITY_BITS; }

static BRAID_INLINE bool anything(Bounds b) {
  return asBits(b.low) == (INFINITY_BITS | 0x80000000u) && asBits(b.high) == INFINITY_BITS;
}

static BRAID_INLINE double geluOf(double x) {
  double u = 0.7978845608028654 * (x + 0.044715 * x * x * x);
  return x < -1e300 ? 0 : 0.5 * x * (1 + tanh(u));
}

static BRAID_INLINE double most(double a, double b) { return a > b || a != a ? a : b; }
static BRAID_INLINE double least(double a, double b) { return a < b || a != a ? a : b; }

static BRAID_INLINE Bounds activated(Bounds b) {
  Bounds result;
  if (asBits(b.expected) == (INFINITY_BITS | 0x80000000u)) {
    result.expected = asFloat(0x7fc00000u);
    result.low = -1;
    result.high = 0;
    return result;
  }
  result.expected = (float)geluOf(b.expected);
  if (anything(b)) {
    result.low = b.low;
    result.high = b.high;
    return result;
  }
  double atLow = geluOf(b.low);
  double atHigh = geluOf(b.high);
  bool turns = b.low <= -0.7524614f && b.high >= -0.7524614f;
  double under = turns ? -0.1700409 : least(atLow, atHigh);
  double over = most(atLow, atHigh);
  double size = most(fabs((double)b.low), fabs((double)b.high));
  double lost = 0x1p-19 * least(size, 8);
  result.low = (float)(under - lost - 0x1p-20 * fabs(under));
  result.high = (float)(over + lost + 0x1p-20 * fabs(over));
  return result;
}

// Scales the bounds by a positive factor, like numbers that are stored scaled.
static BRAID_INLINE Bounds scaled(Bounds b, float by) {
  Bounds result;
  result.expected = b.expected * by;
  result.low = b.low * by;
  result.high = b.high * by;
  return result;
}

static BRAID_INLINE Bounds rounded(int code, Bounds b) {
  Bounds result;
  result.expected = rounded(code, b.expected);
  result.low = rounded(code, b.low);
  result.high = rounded(code, b.high);
  return result;
}

// Returns true if these rounded bounds allow that number.
static BRAID_INLINE bool allows(Bounds b, float found) {
  int nans = isNan(b.expected) + isNan(b.low) + isNan(b.high);
  bool undecided = nans != 0 && nans != 3;
  return found == b.expected || (isNan(found) && isNan(b.expected)) || anything(b)
      || (b.low <= found && found <= b.high) || (undecided && !isFinite(found));
}

// Returns the largest distance from the expected number within the interval.
static BRAID_INLINE double reach(Bounds b) {
  return most((double)b.high - b.expected, (double)b.expected - b.low);
}

// Returns the distance from a number of that type to the next larger in magnitude.
static BRAID_INLINE double step(int code, float value) {
  int exponent = (int)((asBits(value) & SIZE_MASK) >> 23) - 127;
  int smallest = code == E4M3 ? -6 : code == FP16 || code == E5M2 ? -14 : -126;
  int fraction = code == BF16 ? 7 : code == FP16 ? 10 : code == E4M3 ? 3 : code == E5M2 ? 2 : 23;
  return ldexp(1.0, (exponent > smallest ? exponent : smallest) - fraction);
}

// Returns the error of a stored number beyond that of its last rounding. fp8 stores at most its
// largest number.
static BRAID_INLINE double unexplained(int code, float expected, float found) {
  float largest = code == E4M3 ? 448.0f : code == E5M2 ? 57344.0f : asFloat(INFINITY_BITS);
  float wanted = expected > largest ? largest : expected < -largest ? -largest : expected;
  double beyond = fabs((double)found - wanted) - step(code, found) / 2;
  return beyond > 0 ? beyond : 0;
}
