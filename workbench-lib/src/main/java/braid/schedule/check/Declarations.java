package braid.schedule.check;

import braid.model.AttentionGradientSpec;
import braid.model.AttentionSpec;
import braid.model.DType;
import braid.model.GemmSpec;
import braid.model.Tokens;
import braid.schedule.Buffer;
import braid.schedule.Finish;
import braid.schedule.Goal;
import braid.schedule.Region;
import braid.schedule.Step;
import braid.schedule.Step.Access;
import braid.schedule.Step.After;
import braid.schedule.Step.Attend;
import braid.schedule.Step.AttendGradient;
import braid.schedule.Step.Copy;
import braid.schedule.Step.Gemm;
import braid.schedule.Step.LibraryCall;
import braid.schedule.Step.Mark;
import braid.schedule.Step.Merge;
import braid.schedule.Step.Move;
import braid.schedule.Step.Partial;
import braid.schedule.Step.Prepare;
import braid.schedule.Step.Recode;
import braid.schedule.Step.Reduce;
import braid.schedule.Step.Signal;
import braid.schedule.Step.Tile;
import braid.schedule.Step.Wait;
import braid.schedule.Step.Zero;
import braid.schedule.check.Contents.Array;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Checks every port and step against the schedule's declarations: lanes, buffers, and the sizes
/// and types of the regions of a step. Later checks treat a lane without a declaration as declared.
/// It is not known what steps with another mistake should use: later checks leave them out.
final class Declarations {
  private final Wiring wiring;
  private final Map<String, Buffer> buffers;
  private final List<Finding> findings = new ArrayList<>();
  private final BitSet uncertain = new BitSet();

  /// Arrays that uncertain steps write, and ranks of such steps.
  private final Set<Array> uncertainArrays = new HashSet<>();

  private final BitSet uncertainRanks = new BitSet();
  private boolean portsFit = true;

  /// The step that is checked.
  private int number;

  Declarations(Wiring wiring) {
    this.wiring = wiring;
    buffers = wiring.schedule().buffers().stream().collect(Collectors.toMap(Buffer::name, b -> b));
    checkPorts();
    checkSteps();
  }

  List<Finding> findings() {
    return findings;
  }

  /// Returns whether the ports are regions of declared buffers.
  boolean portsFit() {
    return portsFit;
  }

  /// Returns whether it is not known which rows a step should use.
  boolean isUncertain(int number) {
    return uncertain.get(number);
  }

  /// Returns whether an uncertain step writes rows of an array.
  boolean isUncertain(Region region) {
    return uncertainArrays.contains(Array.of(region));
  }

  /// Returns whether an uncertain step of a rank may have to write other arrays than it does.
  boolean isUncertainRank(int rank) {
    return uncertainRanks.get(rank);
  }

  /// Adds a mistake of the step, once: it may read and write one region.
  @SuppressWarnings("AnnotateFormatMethod") // All callers are here.
  private void finding(String text, Object... values) {
    var finding =
        new Finding(wiring.rank(number), wiring.name(number) + ": " + text.formatted(values));
    if (!findings.contains(finding)) {
      findings.add(finding);
    }
  }

  private void checkPorts() {
    for (var port : wiring.schedule().ports()) {
      for (int rank = 0; rank < wiring.schedule().ranks(); rank++) {
        var region = port.on(rank);
        boolean declared = region.rank() == rank && declares(region.buffer());
        if (!declared || !region.hasAllColumns()) {
          portsFit = false;
          findings.add(
              new Finding(
                  rank,
                  "port %s is %s on rank %d; give it %s"
                      .formatted(
                          port.name(),
                          region,
                          rank,
                          declared
                              ? "all %d columns".formatted(region.buffer().columns(rank))
                              : "a region of a declared buffer on that rank")));
        }
      }
    }
  }

  private void checkSteps() {
    for (number = 0; number < wiring.size(); number++) {
      var step = wiring.step(number);
      if (wiring.lane(number) >= wiring.schedule().lanes().size()) {
        boolean named =
            wiring.schedule().lanes().stream()
                .anyMatch(lane -> lane.name().equals(step.lane().name()));
        finding(
            named
                ? "the schedule has another lane of this name; use the one of the builder"
                : "the schedule has no such lane; add it to the builder");
      }
      int before = findings.size();
      checkSizes(step);
      if (findings.size() == before) {
        regions(step).forEach(region -> checkRegion(step, region));
      }
      if (findings.size() > before) {
        uncertain.set(number);
        uncertainRanks.set(wiring.rank(number));
        written(number).forEach(region -> uncertainArrays.add(Array.of(region)));
      }
    }
  }

  /// Returns the rows that a step writes: of an uncertain one those of declared buffers, without
  /// those of its finish.
  List<Region> written(int step) {
    boolean mistaken = isUncertain(step);
    var all =
        switch (wiring.step(step)) {
          case Gemm gemm when mistaken -> gemm.tiles().stream().map(Tile::output);
          case Reduce reduce when mistaken -> Stream.of(reduce.output());
          case Step other ->
              other.accesses(wiring.rank(step)).stream()
                  .filter(access -> access.use() != Access.Use.READ)
                  .map(Access::region);
        };
    return all.filter(region -> !region.isEmpty() && (!mistaken || declares(region.buffer())))
        .toList();
  }

  private void checkRegion(Step step, Region region) {
    var buffer = region.buffer();
    if (!declares(buffer)) {
      finding(
          buffers.containsKey(buffer.name())
              ? "the schedule declares another buffer %s; use the one of the builder"
              : "the schedule declares no such buffer %s; add it to the builder",
          buffer);
    } else if (region.rank() != wiring.rank(number) && !buffer.symmetric()) {
      finding(
          "%s is private to rank %d; make it symmetric or copy it on its own rank",
          region, region.rank());
    } else if (!region.hasAllColumns() && !takesSomeColumns(step, region)) {
      finding(
          "only copies, sums without a finish, and query, key and value of attention take some of"
              + " the columns but it takes %s of %d; copy them to a buffer of their own",
          region, buffer.columns(region.rank()));
    }
  }

  private static boolean takesSomeColumns(Step step, Region region) {
    return switch (step) {
      case Copy _, Recode _ -> true;
      case Reduce reduce -> reduce.finish().equals(Finish.NONE);
      case Attend attend -> !isOf(attend.result(), region) && !isOf(attend.written(), region);
      case AttendGradient gradient -> !isOf(gradient.block().result(), region);
      default -> false;
    };
  }

  private static boolean isOf(Partial partial, Region region) {
    return region.equals(partial.output()) || region.equals(partial.lse());
  }

  private boolean declares(Buffer buffer) {
    return buffer.equals(buffers.get(buffer.name()));
  }

  /// Returns the regions of a step, without the form of a weight that the backend keeps.
  private static List<Region> regions(Step step) {
    var kept =
        switch (step) {
          case Gemm gemm -> Optional.of(Prepare.operand(gemm.weight()));
          case Prepare prepare -> Optional.of(Prepare.operand(prepare.weight()));
          default -> Optional.<Region>empty();
        };
    return step.accesses(Wiring.NONE).stream()
        .map(Access::region)
        .filter(region -> kept.filter(region::equals).isEmpty())
        .toList();
  }

  /// Checks that the regions of a step match in rows, columns and type.
  private void checkSizes(Step step) {
    switch (step) {
      case Copy copy -> copy.moves().forEach(this::checkMove);
      case Recode recode -> recode.moves().forEach(move -> checkRecoding(move, recode));
      case Gemm gemm -> gemm.tiles().forEach(tile -> checkTile(gemm, tile));
      case Reduce reduce -> {
        reduce.parts().forEach(part -> checkShapes(part, reduce.output()));
        if (reduce.parts().isEmpty()) {
          finding("a sum needs 1 or more parts but has none");
        }
        checkFinish(reduce.finish(), reduce.output());
      }
      case Attend attend ->
          checkAttention(attend, attend.continued() && attend.finished().isEmpty());
      case AttendGradient gradient -> checkGradient(gradient);
      case Merge merge -> {
        if (merge.parts().isEmpty()) {
          finding("a merge needs 1 or more parts but has none");
        }
        for (var part : merge.parts()) {
          checkShapes(part.output(), merge.result().output());
          checkShapes(part.lse(), merge.result().lse());
          checkWide(part.output());
        }
        checkPartial(merge.result());
      }
      case Zero _, Prepare _, LibraryCall _, Signal _, Wait _, Mark _, After _ -> {}
    }
  }

  private void checkMove(Move move) {
    var from = move.from();
    var to = move.to();
    checkShapes(from, to);
    boolean transposed = from.buffer().transposed();
    if (transposed != to.buffer().transposed()) {
      finding(
          "%s is stored by columns and %s is not; copy between buffers of one layout",
          transposed ? from : to, transposed ? to : from);
    }
    checkTypes(from, to, "a copy converts nothing");
  }

  private void checkRecoding(Move move, Recode recode) {
    var from = move.from();
    var to = move.to();
    var wide = recode.rounds() ? from : to;
    var narrow = recode.rounds() ? to : from;
    var type = narrow.buffer().dtype();
    if (type != DType.FP8_E4M3 || wide.buffer().dtype().isFp8()) {
      finding(
          "%s is %s and %s is %s; round to fp8_e4m3 or restore from it",
          from, from.buffer().dtype(), to, to.buffer().dtype());
    }
    if (!move.isLocal()) {
      finding("%s and %s are of two ranks; recode first and copy the rounded heads", from, to);
    }
    check("rows", from, from.rows(), to, to.rows());
    int headSize = recode.headSize();
    if (headSize < 1
        || wide.columns() % headSize != 0
        || narrow.columns() != Recode.rounded(wide.columns(), headSize)) {
      finding(
          "heads of %d numbers take %d columns when rounded, 4 of them for the scale, but %s has %d columns and %s has %d",
          headSize,
          headSize < 1 ? 0 : Recode.rounded(headSize, headSize),
          wide,
          wide.columns(),
          narrow,
          narrow.columns());
    }
  }

  private void checkTile(Gemm gemm, Tile tile) {
    var input = tile.input();
    var weight = gemm.weight();
    check("rows", input, input.rows(), tile.output(), tile.output().rows());
    check("depth", input, input.columns(), weight, weight.rows());
    // The types of the problem may differ.
    if (!(wiring.schedule().goal() instanceof Goal.Solution(GemmSpec spec, var _)
        && input.buffer().dtype() == spec.dtype()
        && weight.buffer().dtype() == spec.weightDtype())) {
      checkTypes(input, weight, "multiply numbers of one type");
    }
    checkColumns(weight, tile.output());
    checkFinish(gemm.finish(), tile.output());
  }

  /// @param some true if rows of the query without a position are left as they are
  private void checkAttention(Attend attend, boolean some) {
    var spec = attend.spec();
    goal()
        .filter(
            goal ->
                spec.group() != goal.group()
                    || !spec.heads(goal.heads(), goal.kvHeads()).equals(goal))
        .ifPresent(goal -> finding("it is of %s but the schedule is of %s", spec, goal));
    var result = attend.result();
    check("rows", attend.query(), attend.query().rows(), result.output(), result.output().rows());
    check("rows", attend.key(), attend.key().rows(), attend.value(), attend.value().rows());
    checkColumns(attend.query(), (long) spec.heads() * spec.headSize());
    checkColumns(result.output(), (long) spec.heads() * spec.headSize());
    checkColumns(attend.key(), (long) spec.kvHeads() * spec.headSize());
    checkColumns(attend.value(), (long) spec.kvHeads() * spec.headSize());
    checkColumns(result.lse(), spec.heads());
    for (var region : List.of(attend.query(), attend.key(), attend.value())) {
      var type = region.buffer().dtype();
      if (type != spec.dtype()) {
        finding("%s is %s but the attention's type is %s", region, type, spec.dtype());
      }
    }
    checkPositions(attend.query(), attend.queries(), spec, some);
    checkPositions(attend.key(), attend.keys(), spec, false);
    if (Tokens.pairs(spec, attend.queries(), attend.keys()).isEmpty()) {
      finding(
          "its positions are those of several blocks; add it by Program.attend, which divides it");
    }
    checkPartial(result);
    attend.finished().ifPresent(output -> checkShapes(result.output(), output));
    if (attend.continued()) {
      checkWide(result.output());
    }
  }

  /// Returns the attention that the schedule computes or differentiates.
  private Optional<AttentionSpec> goal() {
    return switch (wiring.schedule().goal()) {
      case Goal.Solution(AttentionSpec spec, var _) -> Optional.of(spec);
      case Goal.Solution(AttentionGradientSpec spec, var _) -> Optional.of(spec.forward());
      case Goal.Solution(GemmSpec _, var _) -> Optional.empty();
      case Goal.Collected _, Goal.Unstated _ -> Optional.empty();
    };
  }

  private void checkGradient(AttendGradient gradient) {
    var block = gradient.block();
    checkAttention(block, gradient.continuesQuery());
    for (var region : List.of(block.result().output(), gradient.outputGradient())) {
      checkShapes(block.query(), region);
      checkTypes(block.query(), region, "give both one type");
    }
    checkShapes(block.query(), gradient.result().query());
    checkShapes(block.key(), gradient.result().key());
    checkShapes(block.value(), gradient.result().value());
    checkSum(gradient.result().query(), gradient.continuesQuery());
    checkSum(gradient.result().key(), gradient.continuesKeys());
    checkSum(gradient.result().value(), gradient.continuesKeys());
  }

  /// A gradient that nothing is added to may be of the attention's type.
  private void checkSum(Region sum, boolean continued) {
    var type = goal().map(AttentionSpec::dtype);
    if (continued || !type.equals(Optional.of(sum.buffer().dtype()))) {
      checkWide(sum);
    }
  }

  /// @param some true if rows without a position are left as they are
  private void checkPositions(Region rows, Tokens positions, AttentionSpec spec, boolean some) {
    if (!positions.areWithin(spec.positions())) {
      finding(
          "positions are 0..%d but %s has %d..%d",
          spec.positions() - 1, rows, positions.first(), positions.runs().getLast().end() - 1);
    }
    if (some ? positions.endRow() > rows.rows() : !positions.haveAll(rows.rows())) {
      finding("%s has %d rows but positions of %d", rows, rows.rows(), positions.count());
    }
  }

  private void checkPartial(Partial partial) {
    var output = partial.output();
    check("rows", output, output.rows(), partial.lse(), partial.lse().rows());
    checkWide(partial.lse());
  }

  /// Partial results are merged in fp32.
  private void checkWide(Region region) {
    var type = region.buffer().dtype();
    if (type != DType.FP32) {
      finding("%s must be %s, as partial results are, but is %s", region, DType.FP32, type);
    }
  }

  private void checkFinish(Finish finish, Region output) {
    int rank = output.rank();
    finish
        .bias()
        .ifPresent(
            bias -> {
              checkColumns(bias.on(rank), output);
              checkSumType(bias, output);
              if (bias.rows(rank) != 1) {
                finding("a bias has 1 row but %s has %d", bias, bias.rows(rank));
              }
            });
    finish
        .preActivation()
        .ifPresent(
            kept -> {
              var all = output.buffer().on(rank);
              check("rows", kept.on(rank), kept.rows(rank), all, all.rows());
              checkColumns(kept.on(rank), output);
              checkSumType(kept, output);
            });
  }

  private void checkSumType(Buffer buffer, Region output) {
    var type = output.buffer().dtype();
    if (buffer.dtype() != type.sumType()) {
      finding(
          "for %s in %s, %s must be %s but is %s",
          output, type, buffer, type.sumType(), buffer.dtype());
    }
  }

  private void checkTypes(Region one, Region other, String remedy) {
    var type = one.buffer().dtype();
    var otherType = other.buffer().dtype();
    if (type != otherType) {
      finding("%s is %s but %s is %s; %s", one, type, other, otherType, remedy);
    }
  }

  private void checkShapes(Region one, Region other) {
    check("rows", one, one.rows(), other, other.rows());
    checkColumns(one, other);
  }

  private void checkColumns(Region one, Region other) {
    check("columns", one, one.columns(), other, other.columns());
  }

  private void checkColumns(Region region, long wanted) {
    if (region.columns() != wanted) {
      finding("%s must have %d columns but has %d", region, wanted, region.columns());
    }
  }

  private void check(String sizes, Region one, long size, Region other, long otherSize) {
    if (size != otherSize) {
      finding(
          "%s must be of one size but are %d of %s and %d of %s",
          sizes, size, one, otherSize, other);
    }
  }
}
