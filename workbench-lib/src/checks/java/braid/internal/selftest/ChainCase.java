package braid.internal.selftest;

import braid.Chain;
import braid.LocalTensor;
import braid.Pipeline;
import braid.ProcessGroup;
import braid.SymmetricTensor;
import braid.Tensor;
import braid.TensorView;
import braid.internal.rank.Closing;
import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.model.DType;
import braid.model.Fused;
import braid.model.GemmSpec;
import braid.model.Overlap;
import braid.model.Place;
import braid.model.Timing;
import braid.model.TokenLayout;
import braid.natives.kernels.Integers;
import braid.schedule.Part;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;

/// A chain whose links pass data through tensors of the caller, compared with plain loops.
///
/// ```
/// pipelines: all-gather-gemm -> hidden -> gemm-reduce-scatter
/// attention: gemm -> key   ┐
///            gemm -> value ┴ attention -> attended -> all-gather-gemm
///            gemm -> output gradient ---------------> attention backward
/// fused:     one gemm -> [query | key | value], and one tensor of their gradients
/// ```
///
/// @param tuning method of the attention; if it is replayed, so are the pipelines
public record ChainCase(Form form, DType dtype, ContextParallel tuning) implements TabledCase {
  /// Links of the chain.
  public enum Form {
    PIPELINES,
    ATTENTION,
    FUSED;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  private static final List<ContextParallel> METHODS =
      List.of(
          ContextParallel.ring(),
          ContextParallel.ring().neighborToNeighbor(),
          ContextParallel.allGatherKv(),
          ContextParallel.ulysses(),
          ContextParallel.unfused());

  private static final int ITERATIONS_IN_FLIGHT = 3;

  /// Tokens of a rank, in the two runs of a zigzag layout.
  private static final int ROWS = 6;

  private static final int HEAD_SIZE = 8;

  /// Depth of the projections: their results are exact in every type.
  private static final int DEPTH = 4;

  /// Keeps the scores small.
  private static final float SCALE = 1f / 64;

  /// Returns both chains in every type, enqueued and replayed, that of attention by every method.
  public static List<ChainCase> table() {
    var cases = new ArrayList<ChainCase>();
    for (var dtype : AttentionCase.DTYPES) {
      for (var tuning : METHODS) {
        cases.add(new ChainCase(Form.ATTENTION, dtype, tuning));
        cases.add(new ChainCase(Form.FUSED, dtype, tuning));
      }
      for (var form : Form.values()) {
        cases.add(new ChainCase(form, dtype, METHODS.getFirst().replay()));
      }
      cases.add(new ChainCase(Form.PIPELINES, dtype, METHODS.getFirst()));
    }
    return cases;
  }

  /// Returns both chains in every type, that of attention by another method in each; one type is
  /// replayed.
  public static List<ChainCase> quick() {
    var cases = new ArrayList<ChainCase>();
    int turn = 0;
    for (var dtype : AttentionCase.DTYPES) {
      var method = METHODS.get(turn++ % METHODS.size());
      var tuning = dtype == DType.BF16 ? method.replay() : method;
      for (var form : Form.values()) {
        cases.add(new ChainCase(form, dtype, tuning));
      }
    }
    return cases;
  }

  @Override
  public String what() {
    return "chain";
  }

  @Override
  public String method() {
    return form.toString();
  }

  @Override
  public String text() {
    return "chain of %s, %s%s"
        .formatted(
            form,
            dtype,
            form == Form.PIPELINES
                ? tuning.replayed() ? ", replayed" : ""
                : ", attention by " + tuning);
  }

  @Override
  public boolean isReplayed() {
    return tuning.replayed();
  }

  @Override
  public Opened open(CaseContext context, Findings findings) {
    var resources = new ArrayDeque<AutoCloseable>();
    try {
      return switch (form) {
        case PIPELINES -> new Pipelines(this, context, resources);
        case ATTENTION, FUSED -> new Layer(this, context, resources);
      };
    } catch (RuntimeException | Error e) {
      Closing.all(resources::poll);
      throw e;
    }
  }

  /// Runs a chain, in every second round in flight.
  private static void run(Chain chain, int round) {
    if (round % 2 == 0) {
      chain.run();
    } else {
      var _ = chain.time(ITERATIONS_IN_FLIGHT, Timing.BACK_TO_BACK);
    }
  }

  private static <T extends AutoCloseable> T kept(T resource, Deque<AutoCloseable> resources) {
    resources.push(resource);
    return resource;
  }

  private LocalTensor local(ProcessGroup group, long rows, long columns) {
    return LocalTensor.on(group).shape(rows, columns).dtype(dtype).allocate();
  }

  private static long seed(int round, int rank, int operand) {
    return 1_000_000L * round + 1000L * rank + operand;
  }

  private static float[] filled(TensorView tensor, long seed) {
    var numbers = Integers.first(seed, Math.toIntExact(tensor.elements()));
    var _ = tensor.copyFrom(numbers);
    return numbers;
  }

  /// Two pipelines of uneven sizes.
  private static final class Pipelines implements Opened {
    private static final int M = 23;
    private static final int HIDDEN = 13;
    private static final int N = 11;
    private static final int UP = 1;
    private static final int DOWN = 2;

    private final ChainCase tested;
    private final CaseContext context;
    private final Deque<AutoCloseable> resources;
    private final GemmSpec upSpec;
    private final GemmSpec downSpec;
    private final LocalTensor hidden;
    private final Pipeline up;
    private final Pipeline down;
    private final Chain chain;

    Pipelines(ChainCase tested, CaseContext context, Deque<AutoCloseable> resources) {
      this.tested = tested;
      this.context = context;
      this.resources = resources;
      var group = context.group();
      upSpec = GemmSpec.allGatherGemm(M, HIDDEN, DEPTH).dtype(tested.dtype);
      downSpec = GemmSpec.gemmReduceScatter(M, N, HIDDEN).dtype(tested.dtype);
      var sizes = Part.INPUT.sizes(downSpec, group.size(), group.rank());
      hidden = kept(tested.local(group, sizes.get(0), sizes.get(1)), resources);
      up = kept(builder(upSpec).output(hidden).build(), resources);
      down = kept(builder(downSpec).input(hidden).build(), resources);
      chain = kept(Chain.of(up, down), resources);
    }

    private Pipeline.Builder builder(GemmSpec spec) {
      return Pipeline.on(context.group())
          .gemm(spec)
          .overlap(tested.tuning.replayed() ? Overlap.pipelined(2).replay() : Overlap.pipelined(2))
          .memory(context.kind());
    }

    @Override
    public void round(int round, Findings findings) {
      var place = context.group().place();
      filled(up.input(), seed(round, place.rank(), UP + PlainCase.Operand.INPUT.seed()));
      filled(up.weight(), seed(round, place.rank(), UP + PlainCase.Operand.WEIGHT.seed()));
      filled(down.weight(), seed(round, place.rank(), DOWN + PlainCase.Operand.WEIGHT.seed()));
      run(chain, round);
      var name = "%s on rank %s, round %d: ".formatted(tested.text(), place, round);
      findings.same(name + "hidden", hidden(round, place), hidden.view().toFloats());
      context.alteration().accept(down.output());
      var output =
          new PlainCase(
                  downSpec,
                  (Overlap) down.tuning(),
                  place,
                  operand ->
                      rank ->
                          size ->
                              operand == PlainCase.Operand.INPUT
                                  ? hidden(round, new Place(rank, place.size()))
                                  : Integers.first(seed(round, rank, DOWN + operand.seed()), size))
              .output();
      findings.same(name + "output", PlainCase.stored(downSpec, output), down.output().toFloats());
    }

    private float[] hidden(int round, Place place) {
      var plain =
          new PlainCase(
              upSpec,
              (Overlap) up.tuning(),
              place,
              operand ->
                  rank -> size -> Integers.first(seed(round, rank, UP + operand.seed()), size));
      return PlainCase.stored(upSpec, plain.output());
    }

    @Override
    public void close() {
      Closing.all(resources::poll);
    }
  }

  /// Projections, attention, a projection of all tokens, and the backward pass.
  private static final class Layer implements Opened {
    private static final int INPUT = 1;
    private static final int TO_KEY = 2;
    private static final int TO_VALUE = 3;
    private static final int QUERY = 4;
    private static final int TO_GRADIENT = 5;
    private static final int TO_QUERY = 6;

    private final ChainCase tested;
    private final CaseContext context;
    private final Deque<AutoCloseable> resources;
    private final AttentionCase plain;
    private final LocalTensor x;
    private final LocalTensor query;
    private final LocalTensor attended;

    /// Projections of key and value; of all three if they are fused.
    private final List<Pipeline> projections;

    private final Pipeline toGradient;
    private final Pipeline toOutput;
    private final Pipeline attention;
    private final Pipeline gradient;
    private final Chain chain;

    Layer(ChainCase tested, CaseContext context, Deque<AutoCloseable> resources) {
      this.tested = tested;
      this.context = context;
      this.resources = resources;
      var group = context.group();
      int kvHeads = tested.tuning.headRanks(group.size());
      var spec =
          AttentionSpec.of(ROWS * group.size(), 2 * kvHeads, HEAD_SIZE)
              .kvHeads(kvHeads)
              .causal()
              .layout(TokenLayout.ZIGZAG)
              .scale(SCALE)
              .dtype(tested.dtype)
              .fused(isFused() ? Fused.QKV : Fused.NONE);
      plain = new AttentionCase(spec, tested.tuning, AttentionCase.Pass.BACKWARD);
      int columns = spec.heads() * HEAD_SIZE;
      int kvColumns = kvHeads * HEAD_SIZE;
      x = local(DEPTH);
      query = local(columns);
      attended = local(columns);
      var outputGradient = local(columns);
      var forward =
          Pipeline.on(group)
              .attention(spec)
              .overlap(tested.tuning)
              .memory(context.kind())
              .output(attended);
      if (isFused()) {
        var qkv = symmetric(columns + 2 * kvColumns);
        projections = List.of(projection(columns + 2 * kvColumns, qkv));
        attention = kept(forward.qkv(qkv).build(), resources);
      } else {
        var key = symmetric(kvColumns);
        var value = symmetric(kvColumns);
        projections = List.of(projection(kvColumns, key), projection(kvColumns, value));
        attention = kept(forward.query(query).key(key).value(value).build(), resources);
      }
      toGradient = projection(columns, outputGradient);
      var backward =
          Pipeline.on(group)
              .overlap(tested.tuning)
              .memory(context.kind())
              .backward(attention)
              .outputGradient(outputGradient);
      gradient =
          kept(
              isFused()
                  ? backward.qkvGradient(local(columns + 2 * kvColumns)).build()
                  : backward.queryGradient(local(columns)).build(),
              resources);
      toOutput =
          kept(
              Pipeline.on(group)
                  .gemm(
                      GemmSpec.allGatherGemm(spec.sequence(), DEPTH * group.size(), columns)
                          .dtype(tested.dtype))
                  .overlap(tested.tuning.replayed() ? Overlap.ring().replay() : Overlap.ring())
                  .memory(context.kind())
                  .input(attended)
                  .build(),
              resources);
      chain =
          kept(
              Chain.on(group)
                  .then(projections.toArray(Pipeline[]::new))
                  .then(attention)
                  .then(toOutput, toGradient)
                  .then(gradient),
              resources);
    }

    private boolean isFused() {
      return tested.form == Form.FUSED;
    }

    private LocalTensor local(long columns) {
      return kept(tested.local(context.group(), ROWS, columns), resources);
    }

    private SymmetricTensor symmetric(long columns) {
      return kept(
          SymmetricTensor.on(context.group())
              .shape(ROWS, columns)
              .dtype(tested.dtype)
              .memory(context.kind())
              .allocate(),
          resources);
    }

    /// Returns a multiplication of this rank's tokens, beside which other data is gathered.
    private Pipeline projection(int columns, Tensor output) {
      var group = context.group();
      return kept(
          Pipeline.on(group)
              .gemm(
                  GemmSpec.besideAllGather(ROWS, columns, DEPTH, group.size()).dtype(tested.dtype))
              .memory(context.kind())
              .input(x)
              .output(output)
              .build(),
          resources);
    }

    @Override
    public void round(int round, Findings findings) {
      var group = context.group();
      int rank = group.rank();
      filled(x.view(), seed(round, rank, INPUT));
      filled(query.view(), seed(round, rank, QUERY));
      if (isFused()) {
        var _ = projections.getFirst().weight().copyFrom(fusedWeight(round));
      } else {
        filled(projections.getFirst().weight(), seed(round, 0, TO_KEY));
        filled(projections.getLast().weight(), seed(round, 0, TO_VALUE));
      }
      filled(toGradient.weight(), seed(round, 0, TO_GRADIENT));
      var _ = toOutput.weight().copyFrom(selection());
      run(chain, round);
      var name = "%s on rank %s, round %d: ".formatted(tested.text(), group.place(), round);
      findings.same(name + "projection of the output", selected(), toOutput.output().toFloats());
      context
          .alteration()
          .accept(gradient.tensor(isFused() ? Part.QKV_GRADIENT : Part.QUERY_GRADIENT));
      context.alteration().accept(attention.output());
      var inputs = inputs(round);
      inputs.compareGradient(gradient, findings);
      inputs.compare(attention, findings);
    }

    /// Returns a weight of columns [query | key | value].
    private float[] fusedWeight(int round) {
      int kvColumns = plain.spec().kvHeads() * HEAD_SIZE;
      var widths = List.of(columns(), kvColumns, kvColumns);
      var parts = List.of(TO_QUERY, TO_KEY, TO_VALUE);
      int all = columns() + 2 * kvColumns;
      var weight = new float[DEPTH * all];
      int first = 0;
      for (int part = 0; part < parts.size(); part++) {
        int width = widths.get(part);
        var own = Integers.first(seed(round, 0, parts.get(part)), DEPTH * width);
        for (int row = 0; row < DEPTH; row++) {
          System.arraycopy(own, row * width, weight, row * all + first, width);
        }
        first += width;
      }
      return weight;
    }

    /// Returns a weight each of whose columns selects one column of the input, so that products are
    /// exact.
    private float[] selection() {
      int columns = columns();
      var weight = new float[columns * DEPTH];
      for (int j = 0; j < DEPTH; j++) {
        weight[selected(j) * DEPTH + j] = 1;
      }
      return weight;
    }

    private int selected(int column) {
      return (5 * column + 3) % columns();
    }

    private int columns() {
      return plain.spec().heads() * HEAD_SIZE;
    }

    /// Returns the selected columns of what all ranks have attended to.
    private float[] selected() {
      var all = context.group().gather(attended.view());
      var selected = new float[all.size() * ROWS * DEPTH];
      for (int row = 0; row < all.size() * ROWS; row++) {
        for (int j = 0; j < DEPTH; j++) {
          selected[row * DEPTH + j] = all.get(row / ROWS)[row % ROWS * columns() + selected(j)];
        }
      }
      return selected;
    }

    /// Returns the inputs of the attention, for the whole sequence: projections by plain loops.
    private AttentionCase.Inputs inputs(int round) {
      var spec = plain.spec();
      int kvColumns = spec.kvHeads() * HEAD_SIZE;
      return new AttentionCase.Inputs(
          plain,
          round,
          isFused()
              ? projected(round, TO_QUERY, columns())
              : sequence(
                  columns(), rank -> Integers.first(seed(round, rank, QUERY), ROWS * columns())),
          projected(round, TO_KEY, kvColumns),
          projected(round, TO_VALUE, kvColumns),
          projected(round, TO_GRADIENT, columns()));
    }

    private float[] projected(int round, int operand, int columns) {
      var weight = Integers.first(seed(round, 0, operand), DEPTH * columns);
      return sequence(
          columns,
          rank -> {
            var input = Integers.first(seed(round, rank, INPUT), ROWS * DEPTH);
            var product = new float[ROWS * columns];
            for (int i = 0; i < product.length; i++) {
              for (int d = 0; d < DEPTH; d++) {
                product[i] += input[i / columns * DEPTH + d] * weight[d * columns + i % columns];
              }
            }
            return product;
          });
    }

    /// Rows of a rank's tokens.
    @FunctionalInterface
    private interface Rows {
      float[] of(int rank);
    }

    /// Returns the rows of all ranks in the order of their positions.
    private float[] sequence(int columns, Rows rows) {
      int ranks = context.group().size();
      var sequence = new float[ranks * ROWS * columns];
      IntStream.range(0, ranks)
          .forEach(
              rank -> {
                var mine = rows.of(rank);
                var positions = AttentionOracle.positions(plain.spec(), ranks, rank);
                for (int i = 0; i < ROWS; i++) {
                  System.arraycopy(mine, i * columns, sequence, positions[i] * columns, columns);
                }
              });
      return sequence;
    }

    @Override
    public void close() {
      Closing.all(resources::poll);
    }
  }
}
