package braid;

import braid.internal.report.statistics.Spread;
import braid.model.Tuning;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.function.ToDoubleFunction;

/// Predicted times of tunings, corrected by the measured times of others.
///
/// A simulation errs alike for tunings that are alike. So the logarithm of measured ÷ predicted is
/// taken for a Gaussian process over the tunings: the correlation of two tunings is the product of
/// a factor for each setting in which they differ, and for numbers, such as splits, falls with
/// their ratio. The expected time of a tuning then follows from all measured ones, mostly from its
/// nearest neighbours, and so does the error of that expectation. The mean of the process is the
/// one that makes the measured times most likely; its variance, too, beside a few errors of a usual
/// size, since two or three measured times can agree by chance.
final class CorrectedTimes {
  /// Correlation of two tunings whose numbers differ by a factor of two.
  private static final Map<String, Double> PER_DOUBLING =
      Map.of("splits", 0.75, "streams", 0.85, "workers", 0.85);

  /// Correlation of two tunings that differ in a setting.
  private static final Map<String, Double> PER_SETTING = Map.of("method", 0.4, "replayed", 0.85);

  private static final double OF_ANY_SETTING = 0.7;

  /// Variance of a tuning's own error ÷ variance of what it has in common with others.
  private static final double OWN_VARIANCE = 0.15;

  /// Usual size of an error, as a share, and the number of measured times that it counts as.
  private static final double USUAL_ERROR = 0.05;

  private static final int USUAL_ERRORS = 2;

  private final ToDoubleFunction<Tuning> predicted;
  private final List<Tuning> measured;
  private final double[][] inverse;
  private final double[] weights;
  private final double mean;
  private final double deviation;

  /// Logarithm of an expected time, and its standard deviation.
  record Expected(double log, double deviation) {}

  /// @param predicted predicted time of each tuning
  /// @param times measured times, in the same unit
  CorrectedTimes(ToDoubleFunction<Tuning> predicted, SequencedMap<Tuning, Double> times) {
    this.predicted = predicted;
    measured = List.copyOf(times.sequencedKeySet());
    int count = measured.size();
    var errors = new double[count];
    var correlations = new double[count][count];
    for (int i = 0; i < count; i++) {
      var tuning = measured.get(i);
      errors[i] =
          Math.log(times.getOrDefault(tuning, 1.0)) - Math.log(predicted.applyAsDouble(tuning));
      for (int j = 0; j < count; j++) {
        correlations[i][j] = correlation(tuning, measured.get(j)) + (i == j ? OWN_VARIANCE : 0);
      }
    }
    inverse = inverse(correlations);
    double ofErrors = 0;
    double ofOnes = 0;
    for (var row : inverse) {
      for (int j = 0; j < count; j++) {
        ofErrors += row[j] * errors[j];
        ofOnes += row[j];
      }
    }
    mean = count == 0 ? 0 : ofErrors / ofOnes;
    weights = new double[count];
    double squares = USUAL_ERRORS * USUAL_ERROR * USUAL_ERROR;
    for (int i = 0; i < count; i++) {
      for (int j = 0; j < count; j++) {
        weights[i] += inverse[i][j] * (errors[j] - mean);
      }
      squares += weights[i] * (errors[i] - mean);
    }
    deviation = Math.sqrt(squares / (count + USUAL_ERRORS));
  }

  /// Returns the expected time of a tuning that was not measured.
  Expected expected(Tuning tuning) {
    int count = measured.size();
    var near = new double[count];
    for (int i = 0; i < count; i++) {
      near[i] = correlation(tuning, measured.get(i));
    }
    double correction = mean;
    double known = 0;
    for (int i = 0; i < count; i++) {
      correction += near[i] * weights[i];
      for (int j = 0; j < count; j++) {
        known += near[i] * inverse[i][j] * near[j];
      }
    }
    double unknown = Math.sqrt(Math.max(OWN_VARIANCE, 1 + OWN_VARIANCE - known));
    return new Expected(
        Math.log(predicted.applyAsDouble(tuning)) + correction, deviation * unknown);
  }

  /// Returns the share by which nine of ten expected times are off at most, each expected from the
  /// other measured ones.
  double error() {
    var errors = new double[measured.size()];
    for (int i = 0; i < errors.length; i++) {
      errors[i] = Math.abs(weights[i] / inverse[i][i]);
    }
    return errors.length == 0 ? 0 : Math.expm1(Spread.quantile(errors, 0.9));
  }

  private static double correlation(Tuning one, Tuning two) {
    if (one.equals(two)) {
      return 1;
    }
    var ofOne = one.columns();
    var ofTwo = two.columns();
    var names = new LinkedHashSet<>(ofOne.keySet());
    names.addAll(ofTwo.keySet());
    double correlation = 1;
    for (var name : names) {
      var perDoubling = PER_DOUBLING.get(name);
      if (perDoubling != null) {
        double ratio = Math.max(1, one.count(name, 1)) / (double) Math.max(1, two.count(name, 1));
        correlation *= Math.pow(perDoubling, Math.abs(Math.log(ratio) / Math.log(2)));
      } else if (!ofOne.getOrDefault(name, "").equals(ofTwo.getOrDefault(name, ""))) {
        correlation *= PER_SETTING.getOrDefault(name, OF_ANY_SETTING);
      }
    }
    return correlation;
  }

  /// Returns the inverse of a symmetric, positive definite matrix, by its Cholesky factor.
  private static double[][] inverse(double[][] matrix) {
    int count = matrix.length;
    var factor = new double[count][count];
    for (int i = 0; i < count; i++) {
      for (int j = 0; j <= i; j++) {
        double rest = matrix[i][j];
        for (int k = 0; k < j; k++) {
          rest -= factor[i][k] * factor[j][k];
        }
        factor[i][j] = i == j ? Math.sqrt(rest) : rest / factor[j][j];
      }
    }
    var inverse = new double[count][count];
    for (int column = 0; column < count; column++) {
      var solution = new double[count];
      for (int i = 0; i < count; i++) {
        double rest = i == column ? 1 : 0;
        for (int k = 0; k < i; k++) {
          rest -= factor[i][k] * solution[k];
        }
        solution[i] = rest / factor[i][i];
      }
      for (int i = count - 1; i >= 0; i--) {
        double rest = solution[i];
        for (int k = i + 1; k < count; k++) {
          rest -= factor[k][i] * solution[k];
        }
        solution[i] = rest / factor[i][i];
        inverse[i][column] = solution[i];
      }
    }
    return inverse;
  }
}
