package braid.evidence;

import java.util.Random;

/// Times of a simulated machine with the disturbances of real ones: noise with a long right tail,
/// single outliers, bursts of load, disturbances shared within a round, noise that depends on the
/// previous measurement, and drift.
final class SimulatedMachine {
  private static final double SKEW = 1.5;
  private static final double MEMORY = 0.9;
  private static final double OUTLIERS = 0.02;
  private static final double BURSTS = 0.002;
  private static final int LONGEST_BURST = 20;
  private static final double SLOWER_IN_BURST = 1.3;
  private static final double DRIFT_PER_MEASUREMENT = 2e-4;

  private final double noise;
  private final Random random;
  private final int measurementsPerRound;
  private final boolean alone;
  private final double drift;
  private double lingering;
  private double mood;
  private int burst;
  private int measured;
  private long elapsedNanos;

  private SimulatedMachine(double noise, int measurementsPerRound, boolean alone, long seed) {
    this.noise = noise;
    this.alone = alone;
    this.random = new Random(seed);
    this.measurementsPerRound = measurementsPerRound;
    this.drift = alone ? 0 : DRIFT_PER_MEASUREMENT * random.nextGaussian();
  }

  /// Returns a machine with other users.
  ///
  /// @param noise typical distance between two measurements, as a share
  static SimulatedMachine shared(double noise, int measurementsPerRound, long seed) {
    return new SimulatedMachine(noise, measurementsPerRound, false, seed);
  }

  /// Returns a machine without drift and bursts.
  static SimulatedMachine quiet(double noise, int measurementsPerRound, long seed) {
    return new SimulatedMachine(noise, measurementsPerRound, true, seed);
  }

  /// Returns one measurement of work that takes the given time on a quiet machine.
  long nanos(double quietNanos) {
    if (measured++ % measurementsPerRound == 0) {
      mood = 2 * noise * random.nextGaussian();
    }
    lingering = MEMORY * lingering + noise * Math.sqrt(1 - MEMORY * MEMORY) * random.nextGaussian();
    double own = noise * random.nextGaussian();
    double factor = Math.exp(drift * measured + mood + lingering + (own > 0 ? SKEW * own : own));
    if (random.nextDouble() < OUTLIERS) {
      factor *= 1 - Math.log(1 - random.nextDouble());
    }
    if (!alone && burst == 0 && random.nextDouble() < BURSTS) {
      burst = random.nextInt(LONGEST_BURST);
    }
    if (burst > 0) {
      burst--;
      factor *= SLOWER_IN_BURST;
    }
    long nanos = Math.max(1, Math.round(quietNanos * factor));
    elapsedNanos += nanos;
    return nanos;
  }

  /// Returns the time of all measurements so far.
  long elapsedNanos() {
    return elapsedNanos;
  }
}
