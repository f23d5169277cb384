package braid.launcher.output;

import static braid.launcher.output.OutputMerger.MAX_HELD_CHARS;
import static braid.launcher.ranks.RankEvent.Channel.STDERR;
import static braid.launcher.ranks.RankEvent.Channel.STDOUT;
import static org.assertj.core.api.Assertions.assertThat;

import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class OutputMergerTest {
  private final StringBuilder out = new StringBuilder();
  private final StringBuilder err = new StringBuilder();

  private OutputMerger merger(int ranks, boolean rankZero) {
    return new OutputMerger(
        ranks, rankZero, (channel, text) -> (channel == STDOUT ? out : err).append(text));
  }

  @Test
  void equalLinesAreShownOnceWhoeverComesFirst() {
    var merger = merger(3, true);
    merger.accept(1, STDOUT, "same\n", 0);
    merger.accept(0, STDOUT, "same\n", 0);
    merger.accept(2, STDOUT, "same\n", 0);
    merger.finish();
    assertThat(out).hasToString("same\n");
  }

  @Test
  void aDifferentLineIsShownAsSoonAsRankZeroHasPrintedItsOwn() {
    var merger = merger(2, true);
    merger.accept(1, STDOUT, "rank 1\n", 0);
    assertThat(out).isEmpty();
    merger.accept(0, STDOUT, "rank 0\n", 0);
    assertThat(out).hasToString("rank 0\n[1] rank 1\n");
  }

  @Test
  void aLineThatRankZeroLacksDoesNotMakeTheNextOnesDiffer() {
    var merger = merger(2, true);
    merger.accept(0, STDOUT, "a\nb\n", 0);
    merger.accept(1, STDOUT, "extra\na\nb\n", 0);
    merger.finish();
    assertThat(out).hasToString("a\nb\n[1] extra\n");
  }

  @Test
  void aLineThatAnotherRankLeavesOutIsNotMissed() {
    var merger = merger(2, true);
    merger.accept(0, STDOUT, "a\nb\nc\n", 0);
    merger.accept(1, STDOUT, "a\nc\n", 0);
    merger.finish();
    assertThat(out).hasToString("a\nb\nc\n");
  }

  @Test
  void aLineWaitsForRankZeroOnlyForAWhile() {
    var merger = merger(2, true);
    merger.accept(1, STDOUT, "only here\n", 0);
    merger.tick(OutputMerger.HOLD_NANOS);
    assertThat(out).isEmpty();
    merger.tick(OutputMerger.HOLD_NANOS + 1);
    assertThat(out).hasToString("[1] only here\n");
  }

  @Test
  void theEndOfALineThatAnotherRankHasCutIsNoEmptyLine() {
    var merger = merger(2, true);
    merger.accept(0, STDOUT, "cut", 0);
    merger.accept(1, STDOUT, "late\n", 0);
    merger.tick(OutputMerger.HOLD_NANOS + 1);
    assertThat(out).hasToString("cut\n[1] late\n");
    merger.accept(0, STDOUT, "\nnext\n\n", OutputMerger.HOLD_NANOS + 1);
    merger.finish();
    assertThat(out).hasToString("cut\n[1] late\nnext\n\n");
  }

  @Test
  void anUnfinishedLineOfRankZeroStreamsAndAnotherRanksLineBeginsBelowIt() {
    var merger = merger(2, true);
    merger.accept(0, STDOUT, "working..", 0);
    assertThat(out).hasToString("working..");
    merger.accept(1, STDOUT, "different\n", 0);
    merger.finish();
    assertThat(out).hasToString("working..\n[1] different\n");
  }

  @Test
  void linesAfterAPauseOfRankZeroAreEqualAgain() {
    var merger = merger(2, true);
    for (int i = 0; i < 3000; i++) {
      merger.accept(1, STDOUT, i + "\n", 0);
    }
    merger.tick(OutputMerger.HOLD_NANOS + 1);
    assertThat(out.toString().lines()).hasSize(3000).allMatch(line -> line.startsWith("[1] "));
    out.setLength(0);
    for (int i = 3000; i < 6000; i++) {
      merger.accept(1, STDOUT, i + "\n", OutputMerger.HOLD_NANOS + 1);
    }
    for (int i = 0; i < 6000; i++) {
      merger.accept(0, STDOUT, i + "\n", OutputMerger.HOLD_NANOS + 1);
    }
    merger.finish();
    assertThat(out.toString().lines())
        .containsExactlyElementsOf(IntStream.range(0, 6000).mapToObj(String::valueOf).toList());
  }

  @Test
  void aLineOfAnotherRankThatCameTooEarlyDoesNotMakeTheNextOnesDiffer() {
    var merger = merger(2, true);
    merger.accept(1, STDOUT, "extra\n", 0);
    merger.tick(OutputMerger.HOLD_NANOS + 1);
    merger.accept(0, STDOUT, "a\nb\n", OutputMerger.HOLD_NANOS + 1);
    merger.accept(1, STDOUT, "a\nb\n", OutputMerger.HOLD_NANOS + 1);
    merger.finish();
    assertThat(out).hasToString("[1] extra\na\nb\n");
  }

  @Test
  void stderrIsAlwaysShownWithItsRankLineByLine() {
    var merger = merger(2, true);
    merger.accept(0, STDERR, "same\n", 0);
    merger.accept(1, STDERR, "sa", 0);
    merger.accept(1, STDERR, "me\ntail", 0);
    merger.finish();
    assertThat(err).hasToString("[0] same\n[1] same\n[1] tail\n");
  }

  @Test
  void oneRankNeedsNoPrefixes() {
    var merger = merger(1, true);
    merger.accept(0, STDOUT, "out", 0);
    merger.accept(0, STDERR, "err", 0);
    merger.finish();
    assertThat(out).hasToString("out");
    assertThat(err).hasToString("err");
  }

  @Test
  void withoutRankZeroEveryLineIsShownAtOnce() {
    var merger = merger(3, false);
    merger.accept(2, STDOUT, "two\n", 0);
    assertThat(out).hasToString("[2] two\n");
  }

  /// Equal text without a line end is shown once, and different text with its rank, in pieces.
  @Test
  void aLineWithoutEndIsComparedAndShownInPieces() {
    var merger = merger(2, true);
    var endless = "x".repeat(1000);
    int times = 4 * OutputMerger.MAX_LINE_CHARS / endless.length();
    for (int i = 0; i < times; i++) {
      merger.accept(0, STDOUT, endless, 0);
      merger.accept(1, STDOUT, endless, 0);
      merger.accept(1, STDERR, endless, 0);
    }
    assertThat(out).doesNotContain("[1]");
    assertThat(err.length()).isGreaterThan(3 * OutputMerger.MAX_LINE_CHARS);
    assertThat(err.toString().lines().toList())
        .hasSize(3)
        .allMatch(line -> line.length() == OutputMerger.MAX_LINE_CHARS + "[1] ".length());
  }

  @Test
  void aRankThatRunsFarAheadIsNotHeld() {
    var merger = merger(2, true);
    for (int i = 0; i < 100_000; i++) {
      merger.accept(1, STDOUT, "only here " + i + "\n", 0);
    }
    assertThat(out.length()).isGreaterThan(1_000_000);
    assertThat(out.toString()).startsWith("[1] only here 0\n[1] only here 1\n");
  }

  /// Prints far more lines than there are kept hashes; the ranks stay in step within that number.
  @Test
  void equalLinesStayEqualHoweverManyThereAre() {
    var merger = merger(2, true);
    int step = OutputMerger.MAX_REFERENCE_LINES / 4;
    for (int i = 0; i < 8; i++) {
      var lines = new StringBuilder();
      for (int line = 0; line < step; line++) {
        lines.append(i * step + line).append('\n');
      }
      out.setLength(0);
      merger.accept(0, STDOUT, lines.toString(), 0);
      merger.accept(1, STDOUT, lines.toString(), 0);
      assertThat(out.indexOf("[1]")).isNegative();
    }
  }

  @Test
  void aRankThatIsTooFarBehindIsShown() {
    var merger = merger(2, true);
    merger.accept(0, STDOUT, "first\n", 0);
    merger.accept(0, STDOUT, "x\n".repeat(OutputMerger.MAX_REFERENCE_LINES), 0);
    out.setLength(0);
    merger.accept(1, STDOUT, "first\nx\n", 0);
    merger.finish();
    assertThat(out).hasToString("[1] first\n");
  }

  @Test
  void anEqualLineWithoutEndIsShownOnce() {
    var merger = merger(2, true);
    merger.accept(0, STDOUT, "a\ntail", 0);
    merger.accept(1, STDOUT, "a\ntail", 0);
    merger.finish();
    assertThat(out).hasToString("a\ntail");
  }

  /// Waiting for a dead rank 0 at each line would delay the end of a rank that prints without end.
  @Test
  @Timeout(60)
  void aRankThatRunsAheadOfASilentRankZeroIsHeldBackOnce() {
    var merger = merger(2, true);
    merger.accept(1, STDOUT, "x".repeat(MAX_HELD_CHARS * 3 / 4) + "\n", 0);
    for (int chunk = 0; chunk < 1000; chunk++) {
      merger.keepPace(1);
    }
    assertThat(out).isEmpty();
  }
}
