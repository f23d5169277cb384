package braid.schedule;

import static org.assertj.core.api.Assertions.assertThat;

import braid.model.AttentionSpec;
import braid.model.ContextParallel;
import braid.model.GemmSpec;
import braid.model.Method;
import braid.model.MimeBundle;
import braid.model.Overlap;
import braid.model.TokenLayout;
import braid.model.Transport;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Compares every timeline in comments and pages with the generated one. The test writes the
/// regenerated files to `target/timelines`; to update them, run it and copy them from there.
class GeneratedTimelinesTest {
  private static final Path PLANNERS = Path.of("src/main/java/braid/schedule/plan");
  private static final Path PAGE = Path.of("../docs/schedules.md");
  private static final Path ATTENTION_PAGE = Path.of("../docs/guide/context_parallelism.md");
  private static final Path PICTURE = Path.of("../docs/schedule.svg");
  private static final Path REGENERATED = Path.of("target/timelines");

  /// Matches "Rank 0 of 4, `allGatherGemm`, `pipelined(2)`:" and the block after it.
  private static final Pattern EXAMPLE =
      Pattern.compile(
          "(?<margin>[ /]*)Rank (?<rank>\\d+) of (?<ranks>\\d+), `(?<spec>\\w+)`, "
              + "`(?<how>\\w+(?:\\(\\)\\.neighborToNeighbor)?)\\((?<splits>\\d*)\\)(?:\\.over\\((?<transport>\\w+)\\))?`:\n[ /]*\n[ /]*```(?:text)?\n(?<block>.*?)[ /]*```\n",
          Pattern.DOTALL);

  @ParameterizedTest
  @ValueSource(
      strings = {
        "GatherPlanner",
        "ScatterPlanner",
        "OneShotPlanner",
        "PeerSumPlanner",
        "LibraryPlanner",
        "AttentionPlanner",
        "AttentionGradientPlanner",
        "UlyssesPlanner",
        "UlyssesGradientPlanner"
      })
  void plannersShowWhatTheyPlan(String planner) throws IOException {
    isAsGenerated(PLANNERS.resolve(planner + ".java"));
  }

  @Test
  void thePageShowsEveryPatternAndMethod() throws IOException {
    isAsGenerated(PAGE);
    var shown = new HashSet<String>();
    EXAMPLE
        .matcher(Files.readString(PAGE))
        .results()
        .forEach(found -> shown.add(spec(found).pattern() + " " + overlap(found).method()));
    for (var pattern : GemmSpec.Pattern.values()) {
      for (var method : Method.values()) {
        if (method.unsupported(pattern).isEmpty()) {
          assertThat(shown).contains(pattern + " " + method);
        }
      }
    }
  }

  @Test
  void thePageOfContextParallelismShowsEveryMethod() throws IOException {
    isAsGenerated(ATTENTION_PAGE);
    var shown = new HashSet<ContextParallel.Method>();
    EXAMPLE
        .matcher(Files.readString(ATTENTION_PAGE))
        .results()
        .forEach(found -> shown.add(contextParallel(found).method()));
    assertThat(shown).containsExactlyInAnyOrder(ContextParallel.Method.values());
  }

  @Test
  void thePictureIsAsGenerated() throws IOException {
    var schedule = Schedule.of(spec("gemmReduceScatter"), Overlap.pipelined(2), 4);
    var generated = schedule.display().data().get(MimeBundle.SVG);
    Files.createDirectories(REGENERATED);
    Files.writeString(REGENERATED.resolve(PICTURE.getFileName()), generated);
    assertThat(Files.readString(PICTURE)).isEqualTo(generated);
  }

  private static void isAsGenerated(Path file) throws IOException {
    var text = Files.readString(file);
    var examples = EXAMPLE.matcher(text);
    var generated = examples.replaceAll(found -> Matcher.quoteReplacement(regenerated(found)));
    Files.createDirectories(REGENERATED);
    Files.writeString(REGENERATED.resolve(file.getFileName()), generated);
    // A bar in a block without an example above it would be drawn by hand.
    assertThat(examples.replaceAll("").lines())
        .noneMatch(line -> line.matches("[ /]*[\\w-]+ +[|>] .*"));
    assertThat(EXAMPLE.matcher(text).results()).as("timelines of " + file).isNotEmpty();
    assertThat(text).as("%s, regenerated in %s", file, REGENERATED).isEqualTo(generated);
  }

  private static String regenerated(MatchResult found) {
    var margin = found.group("margin");
    var schedule = schedule(found, Integer.parseInt(found.group("ranks")));
    var block = new StringBuilder();
    schedule
        .timeline(Integer.parseInt(found.group("rank")))
        .lines()
        .forEach(line -> block.append((margin + line).stripTrailing()).append('\n'));
    int from = found.start("block") - found.start();
    return new StringBuilder(found.group())
        .replace(from, from + found.group("block").length(), block.toString())
        .toString();
  }

  private static Schedule schedule(MatchResult found, int ranks) {
    var causal = AttentionSpec.of(8192, 32, 128).causal();
    return switch (found.group("spec")) {
      case "causalAttention" -> Schedule.of(causal, contextParallel(found), ranks);
      case "zigzagAttention" ->
          Schedule.of(causal.layout(TokenLayout.ZIGZAG), contextParallel(found), ranks);
      case "causalAttentionBackward" ->
          Schedule.of(causal.backward(), contextParallel(found), ranks);
      case "zigzagAttentionBackward" ->
          Schedule.of(causal.layout(TokenLayout.ZIGZAG).backward(), contextParallel(found), ranks);
      default -> Schedule.of(spec(found), overlap(found), ranks);
    };
  }

  private static ContextParallel contextParallel(MatchResult found) {
    int number = found.group("splits").isEmpty() ? 1 : Integer.parseInt(found.group("splits"));
    return switch (found.group("how")) {
      case "ring" -> ContextParallel.ring().splits(number);
      case "ring().neighborToNeighbor" -> ContextParallel.ring().neighborToNeighbor();
      case "allGatherKv" -> ContextParallel.allGatherKv().splits(number);
      case "ulysses" -> ContextParallel.ulysses().splits(number);
      case "twoLevel" -> ContextParallel.twoLevel(number);
      case "unfused" -> ContextParallel.unfused();
      default -> throw new AssertionError(found.group("how"));
    };
  }

  private static GemmSpec spec(MatchResult found) {
    return spec(found.group("spec"));
  }

  private static GemmSpec spec(String name) {
    return switch (name) {
      case "allGatherGemm" -> GemmSpec.allGatherGemm(8192, 28672, 8192);
      case "gemmReduceScatter" -> GemmSpec.gemmReduceScatter(8192, 8192, 28672);
      case "gemmAllReduce" -> GemmSpec.gemmAllReduce(8192, 8192, 28672);
      case "besideAllGather" -> GemmSpec.besideAllGather(8192, 8192, 8192, 1L << 26);
      case "besideReduceScatter" -> GemmSpec.besideReduceScatter(8192, 8192, 8192, 1L << 26);
      default -> throw new AssertionError(name);
    };
  }

  private static Overlap overlap(MatchResult found) {
    var tuning = method(found);
    var transport = found.group("transport");
    return transport == null ? tuning : tuning.over(Transport.valueOf(transport));
  }

  private static Overlap method(MatchResult found) {
    var splits = found.group("splits");
    return switch (found.group("how")) {
      case "pipelined" -> Overlap.pipelined(Integer.parseInt(splits));
      case "direct" ->
          splits.isEmpty() ? Overlap.direct() : Overlap.direct(Integer.parseInt(splits));
      case "ring" -> splits.isEmpty() ? Overlap.ring() : Overlap.ring(Integer.parseInt(splits));
      case "doubling" ->
          splits.isEmpty() ? Overlap.doubling() : Overlap.doubling(Integer.parseInt(splits));
      case "twoLevel" -> Overlap.twoLevel(Integer.parseInt(splits));
      case "bulk" -> Overlap.bulk();
      case "unfused" -> Overlap.unfused();
      default -> throw new AssertionError(found.group("how"));
    };
  }
}
