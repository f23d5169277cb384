package braid.schedule;

import braid.model.AttentionGradientSpec;
import braid.model.AttentionSpec;
import braid.model.DType;
import braid.model.Fused;
import braid.model.GemmSpec;
import braid.model.GemmSpec.Feature;
import braid.model.Problem;
import braid.model.Tokens;
import braid.schedule.Buffer.Shape;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;

/// Tensor of a problem. Its name is also the name of the schedule's port for it.
public enum Part {
  /// This rank's part of the input.
  INPUT(true, false),
  /// This rank's part of the weight.
  WEIGHT(true, false),
  /// One number per column of this rank's part of the output.
  BIAS(true, true),
  /// This rank's part of the data communicated beside the multiplication.
  BESIDE_INPUT(true, true),
  /// This rank's part of the output.
  OUTPUT(false, false),
  /// The values before the GELU of the output.
  PRE_ACTIVATION(false, false),
  /// The input of all ranks.
  GATHERED_INPUT(false, false),
  /// The result of the communication beside the multiplication.
  BESIDE_OUTPUT(false, true),
  /// The query of this rank's tokens.
  QUERY(true, false),
  /// The key of this rank's tokens.
  KEY(true, false),
  /// The value of this rank's tokens.
  VALUE(true, false),
  /// The key and the value of this rank's tokens, in one tensor.
  KV(true, false),
  /// The query, the key and the value of this rank's tokens, in one tensor.
  QKV(true, false),
  /// The log-sum-exp of the scores of this rank's tokens.
  LSE(false, false),
  /// The gradient of the output of this rank's tokens.
  OUTPUT_GRADIENT(true, false),
  /// The gradient of the query of this rank's tokens.
  QUERY_GRADIENT(false, false),
  /// The gradient of the key of this rank's tokens, from the queries of all ranks.
  KEY_GRADIENT(false, false),
  /// The gradient of the value of this rank's tokens, from the queries of all ranks.
  VALUE_GRADIENT(false, false),
  /// The gradients of the key and the value of this rank's tokens, in one tensor.
  KV_GRADIENT(false, false),
  /// The gradients of the query, the key and the value of this rank's tokens, in one tensor.
  QKV_GRADIENT(false, false);

  /// Name of the buffer for the largest magnitude of an fp8 output. This buffer is not a port.
  public static final String AMAX = "amax";

  private final boolean given;
  private final boolean vector;

  Part(boolean given, boolean vector) {
    this.given = given;
    this.vector = vector;
  }

  /// Returns whether this part is a vector, not a matrix.
  public boolean isVector() {
    return vector;
  }

  /// Returns whether the user writes this part and a run reads it.
  public boolean given() {
    return given;
  }

  /// Returns whether a run of the problem reads this part. A backward pass also reads the results
  /// of the forward pass.
  public boolean given(Problem problem) {
    return given() || (problem instanceof AttentionGradientSpec && (this == OUTPUT || this == LSE));
  }

  /// Returns the buffer that holds each rank's part of a problem.
  public Buffer buffer(Problem problem, int ranks, boolean symmetric) {
    return new Buffer(
        port(),
        dtype(problem),
        IntStream.range(0, ranks).mapToObj(rank -> shape(problem, ranks, rank)).toList(),
        symmetric,
        problem instanceof GemmSpec spec && isTransposed(spec));
  }

  private boolean isTransposed(GemmSpec spec) {
    return ((this == INPUT || this == GATHERED_INPUT) && spec.has(Feature.TRANSPOSED_INPUT))
        || (this == WEIGHT && spec.has(Feature.TRANSPOSED_WEIGHT));
  }

  /// Returns the shape of a rank's tensor of a problem, as stored.
  public List<Long> sizes(Problem problem, int ranks, int rank) {
    var buffer = buffer(problem, ranks, false);
    long rows = buffer.rows(rank);
    long columns = buffer.columns(rank);
    if (isVector()) {
      return List.of(rows * columns);
    }
    return buffer.transposed() ? List.of(columns, rows) : List.of(rows, columns);
  }

  /// Returns the type of this part's numbers in a problem.
  public DType dtype(Problem problem) {
    return switch (problem) {
      case GemmSpec spec -> dtype(spec);
      case AttentionSpec spec -> this == LSE ? DType.FP32 : spec.dtype();
      case AttentionGradientSpec spec -> dtype(spec.forward());
    };
  }

  private DType dtype(GemmSpec spec) {
    return switch (this) {
      case INPUT, GATHERED_INPUT -> spec.dtype();
      case WEIGHT -> spec.weightDtype();
      case OUTPUT -> spec.outputDtype();
      case PRE_ACTIVATION, BIAS -> spec.sumDtype();
      // Data that is summed over ranks has the type of partial sums.
      case BESIDE_INPUT, BESIDE_OUTPUT ->
          spec.pattern() == GemmSpec.Pattern.GEMM_BESIDE_ALL_GATHER
              ? spec.dtype()
              : spec.sumDtype();
      default -> throw noSuchPart(spec);
    };
  }

  private Shape shape(Problem problem, int ranks, int rank) {
    return switch (problem) {
      case GemmSpec spec -> shape(spec, ranks, rank);
      case AttentionSpec spec -> new Shape(tokens(spec, ranks, rank).count(), columns(spec));
      case AttentionGradientSpec spec -> shape(spec.forward(), ranks, rank);
    };
  }

  /// Returns the tokens of a rank that this part of an attention has a row of, by position:
  /// queries, or keys.
  public Tokens tokens(AttentionSpec spec, int ranks, int rank) {
    return switch (this) {
      case KEY, VALUE, KV, KEY_GRADIENT, VALUE_GRADIENT, KV_GRADIENT ->
          Tokens.ofKeys(spec, ranks, rank);
      default -> Tokens.of(spec, ranks, rank);
    };
  }

  private long columns(AttentionSpec spec) {
    return switch (this) {
      case QUERY, OUTPUT, OUTPUT_GRADIENT, QUERY_GRADIENT -> (long) spec.heads() * spec.headSize();
      case KEY, VALUE, KEY_GRADIENT, VALUE_GRADIENT -> (long) spec.kvHeads() * spec.headSize();
      case KV, KV_GRADIENT -> 2L * spec.kvHeads() * spec.headSize();
      case QKV, QKV_GRADIENT -> (spec.heads() + 2L * spec.kvHeads()) * spec.headSize();
      case LSE -> spec.heads();
      default -> throw noSuchPart(spec);
    };
  }

  /// Returns the tensor of an attention that has the columns of this part: this part, or one in
  /// which it is fused with others.
  public Part tensor(AttentionSpec spec) {
    boolean all = spec.fused() == Fused.QKV;
    return switch (this) {
      case QUERY -> all ? QKV : this;
      case KEY, VALUE -> all ? QKV : spec.fused() == Fused.KV ? KV : this;
      case QUERY_GRADIENT -> all ? QKV_GRADIENT : this;
      case KEY_GRADIENT, VALUE_GRADIENT ->
          all ? QKV_GRADIENT : spec.fused() == Fused.KV ? KV_GRADIENT : this;
      default -> this;
    };
  }

  /// Returns the columns of [#tensor] that are this part.
  public Slice columnsOfTensor(AttentionSpec spec) {
    long own = columns(spec);
    long all = tensor(spec).columns(spec);
    return switch (this) {
      case KEY, KEY_GRADIENT -> new Slice(all == own ? 0 : all - 2 * own, own);
      case VALUE, VALUE_GRADIENT -> new Slice(all - own, own);
      default -> new Slice(0, own);
    };
  }

  private IllegalArgumentException noSuchPart(Problem problem) {
    return new IllegalArgumentException("%s has no %s".formatted(problem, this));
  }

  private Shape shape(GemmSpec spec, int ranks, int rank) {
    var share = Shares.of(spec, ranks, rank);
    long beside = spec.besideElements();
    // The part that holds all data communicated beside the multiplication.
    var whole =
        spec.pattern() == GemmSpec.Pattern.GEMM_BESIDE_ALL_GATHER ? BESIDE_OUTPUT : BESIDE_INPUT;
    return switch (this) {
      case INPUT -> new Shape(share.input().length(), share.inner().length());
      case WEIGHT -> new Shape(share.inner().length(), share.columns().length());
      case BIAS -> new Shape(1, share.columns().length());
      case OUTPUT, PRE_ACTIVATION -> new Shape(share.output().length(), share.columns().length());
      case GATHERED_INPUT -> new Shape(spec.m(), spec.k());
      case BESIDE_INPUT, BESIDE_OUTPUT ->
          new Shape(this == whole ? beside : Slice.of(beside, ranks, rank).length(), 1);
      default -> throw noSuchPart(spec);
    };
  }

  /// Returns the name of this part's port and buffer.
  public String port() {
    return toString();
  }

  /// Returns the name in messages: `gathered input`.
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', ' ');
  }
}
