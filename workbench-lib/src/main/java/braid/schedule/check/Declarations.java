package braid.schedule.check;

import braid.model.AttentionGradientSpec;
import braid.model.AttentionSpec;
import braid.model.DType;
import braid.model.GemmSpec;
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
import braid.schedule.Step.Partial;
import braid.schedule.Step.Prepare;
import braid.schedule.Step.Reduce;
import braid.schedule.Step.Signal;
import braid.schedule.Step.Wait;
import braid.schedule.Step.Zero;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

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

  /// One rank's array.
  private record Array(String buffer, int rank) {
    static Array of(Region region) {
      return new Array(region.buffer().name(), region.rank());
    }
  }

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

  @SuppressWarnings("AnnotateFormatMethod") // All callers are here.
  private void finding(int number, String text, Object... values) {
    var all = new ArrayList<>(List.of(values));
    all.addFirst(wiring.name(number));
    var finding = new Finding(wiring.rank(number), text.formatted(all.toArray()));
    // A step may read and write one region.
    if (!findings.contains(finding)) {
      findings.add(finding);
    }
  }

  @SuppressWarnings("AnnotateFormatMethod") // All callers are here.
  private void portFinding(int rank, String text, Object... values) {
    portsFit = false;
    findings.add(new Finding(rank, text.formatted(values)));
  }

  private void checkPorts() {
    for (var port : wiring.schedule().ports()) {
      for (int rank = 0; rank < wiring.schedule().ranks(); rank++) {
        var region = port.on(rank);
        if (region.rank() != rank || !declares(region.buffer())) {
          portFinding(
              rank,
              "port %s is %s on rank %d; give it a region of a declared buffer on that rank",
              port.name(),
              region,
              rank);
        } else if (!region.hasAllColumns()) {
          portFinding(
              rank,
              "port %s is %s on rank %d; give it all %d columns",
              port.name(),
              region,
              rank,
              region.buffer().columns(rank));
        }
      }
    }
  }

  private void checkSteps() {
    for (int number = 0; number < wiring.size(); number++) {
      if (!wiring.isLaneDeclared(number)) {
        var lane = wiring.step(number).lane();
        boolean named =
            wiring.schedule().lanes().stream().anyMatch(each -> each.name().equals(lane.name()));
        finding(
            number,
            named
                ? "%s: the schedule has another lane of this name; use the one of the builder"
                : "%s: the schedule has no such lane; add it to the builder");
      }
      int before = findings.size();
      if (sizesFit(number)) {
        checkRegions(number);
      }
      if (findings.size() > before) {
        uncertain.set(number);
        uncertainRanks.set(wiring.rank(number));
        written(number).forEach(region -> uncertainArrays.add(Array.of(region)));
      }
    }
  }

  /// Returns the rows of declared buffers that a step writes, without those of its finish.
  List<Region> written(int number) {
    var step = wiring.step(number);
    var plain =
        switch (step) {
          case Gemm gemm ->
              new Gemm(gemm.lane(), gemm.chunk(), gemm.tiles(), gemm.weight(), Finish.NONE);
          case Reduce reduce ->
              new Reduce(
                  reduce.lane(), reduce.chunk(), reduce.parts(), reduce.output(), Finish.NONE);
          default -> step;
        };
    return plain.accesses(wiring.rank(number)).stream()
        .filter(access -> access.use() == Access.Use.WRITE)
        .map(Access::region)
        .filter(region -> declares(region.buffer()))
        .toList();
  }

  private void checkRegions(int number) {
    var step = wiring.step(number);
    for (var region : regions(step)) {
      var buffer = region.buffer();
      if (!declares(buffer)) {
        finding(
            number,
            buffers.containsKey(buffer.name())
                ? "%s: the schedule declares another buffer %s; use the one of the builder"
                : "%s: the schedule declares no such buffer %s; add it to the builder",
            buffer);
      } else if (region.rank() != wiring.rank(number) && !buffer.symmetric()) {
        finding(
            number,
            "%s: %s is private to rank %d; make it symmetric or copy it on its own rank",
            region,
            region.rank());
      } else if (!region.hasAllColumns() && !(step instanceof Copy)) {
        finding(
            number,
            "%s: only copies take some of the columns but it takes %s of %d; copy them to a buffer of their own",
            region,
            buffer.columns(region.rank()));
      }
    }
  }

  private boolean declares(Buffer buffer) {
    return buffer.equals(buffers.get(buffer.name()));
  }

  private List<Region> regions(Step step) {
    return switch (step) {
      // Other accesses are to a form of the weight that the backend keeps.
      case Prepare prepare -> List.of(prepare.weight());
      case Gemm gemm -> {
        var own = Prepare.operand(gemm.weight()).buffer().name();
        yield gemm.accesses(Wiring.NONE).stream()
            .map(Step.Access::region)
            .filter(region -> !region.buffer().name().equals(own))
            .toList();
      }
      default -> step.accesses(Wiring.NONE).stream().map(Step.Access::region).toList();
    };
  }

  /// Returns whether the regions of a step match in rows, columns and type.
  private boolean sizesFit(int number) {
    int before = findings.size();
    switch (wiring.step(number)) {
      case Copy copy ->
          copy.moves()
              .forEach(
                  move -> {
                    same(
                        number,
                        "rows",
                        move.from(),
                        move.from().rows(),
                        move.to(),
                        move.to().rows());
                    sameColumns(number, move.from(), move.to());
                    if (move.from().buffer().transposed() != move.to().buffer().transposed()) {
                      finding(
                          number,
                          "%s: %s is stored by columns and %s is not; copy between buffers of one layout",
                          move.from().buffer().transposed() ? move.from() : move.to(),
                          move.from().buffer().transposed() ? move.to() : move.from());
                    }
                    if (move.from().buffer().dtype() != move.to().buffer().dtype()) {
                      finding(
                          number,
                          "%s: %s is %s but %s is %s; a copy converts nothing",
                          move.from(),
                          move.from().buffer().dtype(),
                          move.to(),
                          move.to().buffer().dtype());
                    }
                  });
      case Gemm gemm ->
          gemm.tiles()
              .forEach(
                  tile -> {
                    var in = tile.input();
                    var out = tile.output();
                    same(number, "rows", in, in.rows(), out, out.rows());
                    same(number, "depth", in, in.columns(), gemm.weight(), gemm.weight().rows());
                    if (!multiply(in.buffer().dtype(), gemm.weight().buffer().dtype())) {
                      finding(
                          number,
                          "%s: %s is %s but %s is %s; multiply numbers of one type",
                          in,
                          in.buffer().dtype(),
                          gemm.weight(),
                          gemm.weight().buffer().dtype());
                    }
                    sameColumns(number, gemm.weight(), out);
                    finishFits(number, gemm.finish(), out);
                  });
      case Reduce reduce -> {
        for (var part : reduce.parts()) {
          same(number, "rows", part, part.rows(), reduce.output(), reduce.output().rows());
          sameColumns(number, part, reduce.output());
        }
        if (reduce.parts().isEmpty()) {
          finding(number, "%s: a sum needs 1 or more parts but has none");
        }
        finishFits(number, reduce.finish(), reduce.output());
      }
      case Attend attend -> attentionFits(number, attend);
      case AttendGradient gradient -> gradientFits(number, gradient);
      case Merge merge -> {
        if (merge.parts().isEmpty()) {
          finding(number, "%s: a merge needs 1 or more parts but has none");
        }
        for (var part : merge.parts()) {
          var result = merge.result();
          same(
              number,
              "rows",
              part.output(),
              part.output().rows(),
              result.output(),
              result.output().rows());
          sameColumns(number, part.output(), result.output());
          same(number, "rows", part.lse(), part.lse().rows(), result.lse(), result.lse().rows());
          sameColumns(number, part.lse(), result.lse());
          wide(number, part.output());
        }
        partialFits(number, merge.result());
      }
      case Zero _, Prepare _, LibraryCall _, Signal _, Wait _, Mark _, After _ -> {}
    }
    return findings.size() == before;
  }

  private void attentionFits(int number, Attend attend) {
    var spec = attend.spec();
    goal()
        .filter(
            goal ->
                spec.group() != goal.group()
                    || !spec.heads(goal.heads(), goal.kvHeads()).equals(goal))
        .ifPresent(
            goal -> finding(number, "%s: it is of %s but the schedule is of %s", spec, goal));
    var output = attend.result().output();
    same(number, "rows", attend.query(), attend.query().rows(), output, output.rows());
    same(number, "rows", attend.key(), attend.key().rows(), attend.value(), attend.value().rows());
    columns(number, attend.query(), (long) spec.heads() * spec.headSize());
    columns(number, output, (long) spec.heads() * spec.headSize());
    columns(number, attend.key(), (long) spec.kvHeads() * spec.headSize());
    columns(number, attend.value(), (long) spec.kvHeads() * spec.headSize());
    columns(number, attend.result().lse(), spec.heads());
    for (var region : List.of(attend.query(), attend.key(), attend.value())) {
      if (region.buffer().dtype() != spec.dtype()) {
        finding(
            number,
            "%s: %s is %s but the attention's type is %s",
            region,
            region.buffer().dtype(),
            spec.dtype());
      }
    }
    positions(number, attend.query(), attend.queryPosition(), spec);
    positions(number, attend.key(), attend.keyPosition(), spec);
    partialFits(number, attend.result());
    if (attend.continued()) {
      wide(number, output);
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

  private void gradientFits(int number, AttendGradient gradient) {
    var block = gradient.block();
    attentionFits(number, block);
    sameShape(number, block.query(), block.result().output());
    sameShape(number, block.query(), gradient.outputGradient());
    sameType(number, block.query(), block.result().output());
    sameType(number, block.query(), gradient.outputGradient());
    sameShape(number, block.query(), gradient.result().query());
    sameShape(number, block.key(), gradient.result().key());
    sameShape(number, block.value(), gradient.result().value());
    sumFits(number, gradient.result().query(), gradient.continuesQuery());
    sumFits(number, gradient.result().key(), gradient.continuesKeys());
    sumFits(number, gradient.result().value(), gradient.continuesKeys());
  }

  /// A gradient that nothing is added to may be of the attention's type.
  private void sumFits(int number, Region sum, boolean continued) {
    var type = goal().map(AttentionSpec::dtype);
    if (continued || !type.equals(Optional.of(sum.buffer().dtype()))) {
      wide(number, sum);
    }
  }

  private void sameShape(int number, Region one, Region other) {
    same(number, "rows", one, one.rows(), other, other.rows());
    sameColumns(number, one, other);
  }

  private void sameType(int number, Region one, Region other) {
    if (one.buffer().dtype() != other.buffer().dtype()) {
      finding(
          number,
          "%s: %s is %s but %s is %s; give both one type",
          one,
          one.buffer().dtype(),
          other,
          other.buffer().dtype());
    }
  }

  private void positions(int number, Region rows, long first, AttentionSpec spec) {
    if (first < 0 || first + rows.rows() > spec.sequence()) {
      finding(
          number,
          "%s: positions are 0..%d but %s has %d..%d",
          spec.sequence() - 1,
          rows,
          first,
          first + rows.rows() - 1);
    }
  }

  private void partialFits(int number, Partial partial) {
    same(
        number,
        "rows",
        partial.output(),
        partial.output().rows(),
        partial.lse(),
        partial.lse().rows());
    wide(number, partial.lse());
  }

  private void columns(int number, Region region, long wanted) {
    if (region.columns() != wanted) {
      finding(number, "%s: %s must have %d columns but has %d", region, wanted, region.columns());
    }
  }

  /// Partial results are merged in fp32.
  private void wide(int number, Region region) {
    if (region.buffer().dtype() != DType.FP32) {
      finding(
          number,
          "%s: %s must be %s, as partial results are, but is %s",
          region,
          DType.FP32,
          region.buffer().dtype());
    }
  }

  /// Returns whether numbers of two types can be multiplied: of one type, or as in the problem.
  private boolean multiply(DType input, DType weight) {
    return input == weight
        || (wiring.schedule().goal() instanceof Goal.Solution(GemmSpec spec, var _)
            && input == spec.dtype()
            && weight == spec.weightDtype());
  }

  private void finishFits(int number, Finish finish, Region output) {
    int rank = output.rank();
    finish
        .bias()
        .ifPresent(
            bias -> {
              sameColumns(number, bias.on(rank), output);
              sumTypeFits(number, bias, output);
              if (bias.rows(rank) != 1) {
                finding(number, "%s: a bias has 1 row but %s has %d", bias, bias.rows(rank));
              }
            });
    finish
        .preActivation()
        .ifPresent(
            kept -> {
              same(
                  number,
                  "rows",
                  kept.on(rank),
                  kept.rows(rank),
                  output.buffer().on(rank),
                  output.buffer().rows(rank));
              sameColumns(number, kept.on(rank), output);
              sumTypeFits(number, kept, output);
            });
  }

  private void sumTypeFits(int number, Buffer buffer, Region output) {
    var expected = output.buffer().dtype().sumType();
    if (buffer.dtype() != expected) {
      finding(
          number,
          "%s: for %s in %s, %s must be %s but is %s",
          output,
          output.buffer().dtype(),
          buffer,
          expected,
          buffer.dtype());
    }
  }

  private void sameColumns(int number, Region one, Region other) {
    same(number, "columns", one, one.columns(), other, other.columns());
  }

  private void same(int number, String what, Region one, long size, Region other, long otherSize) {
    if (size != otherSize) {
      finding(
          number,
          "%s: %s must be of one size but are %d of %s and %d of %s",
          what,
          size,
          one,
          otherSize,
          other);
    }
  }
}
