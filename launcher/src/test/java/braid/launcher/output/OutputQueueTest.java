package braid.launcher.output;

import static braid.launcher.ranks.RankEvent.Channel.STDERR;
import static braid.launcher.ranks.RankEvent.Channel.STDOUT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import braid.model.BraidException;
import braid.model.MimeBundle;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class OutputQueueTest {
  private static final OutputLimit SMALL = new OutputLimit(16 << 10);

  private final StringBuilder out = new StringBuilder();
  private final StringBuilder err = new StringBuilder();
  private final List<String> shown = new ArrayList<>();

  private void deliver(OutputQueue queue) {
    for (var item = queue.next(); item != null; item = queue.next()) {
      switch (item) {
        case OutputItem.Text text when text.channel() == STDOUT -> out.append(text.text());
        case OutputItem.Text text -> err.append(text.text());
        case OutputItem.Shown one ->
            shown.add((one.isUpdate() ? "update " : "") + one.id() + one.bundle().text());
      }
    }
  }

  private static MimeBundle text(String text) {
    return MimeBundle.text(text);
  }

  @Test
  void outputWithinTheLimitPassesUnchanged() {
    var queue = new OutputQueue(SMALL);
    queue.text(STDOUT, "one\n");
    queue.text(STDERR, "two");
    queue.shown(text("three"), "", false);
    queue.finish();
    deliver(queue);
    assertThat(out).hasToString("one\n");
    assertThat(err).hasToString("two");
    assertThat(shown).containsExactly("three");
  }

  /// Checks the count against the characters put in less those that came out.
  @ParameterizedTest
  @ValueSource(ints = {1, 7, 80, 5000, 100_000})
  void theFirstAndTheLastPartAreKeptAndTheRestIsCounted(int piece) {
    var queue = new OutputQueue(SMALL);
    var all = new StringBuilder();
    for (int line = 0; all.length() < 300_000; line++) {
      all.append("line ").append(line).append(line % 3 == 0 ? " größer 𝔸 €\n" : "\n");
    }
    for (int from = 0; from < all.length(); from += piece) {
      queue.text(STDOUT, all.substring(from, Math.min(all.length(), from + piece)));
      deliver(queue);
    }
    int live = out.indexOf("… much output");
    assertThat(live).isPositive();
    queue.finish();
    deliver(queue);

    var count =
        java.util.regex.Pattern.compile("\n… ([0-9,]+) bytes in ([0-9,]+) lines left out; .*\n")
            .matcher(out);
    assertThat(count.find()).as(out.toString()).isTrue();
    var first = out.substring(0, live).stripTrailing();
    var last = out.substring(count.end());
    assertThat(all.toString()).endsWith(last).startsWith(first);
    assertThat(last).startsWith("line ").hasSizeGreaterThan(2000);
    var left = all.substring(first.length(), all.length() - last.length());
    assertThat(Long.parseLong(count.group(2).replace(",", "")))
        .isBetween(left.lines().count() - 1, left.lines().count());
    assertThat(Long.parseLong(count.group(1).replace(",", "")))
        .isCloseTo(
            left.getBytes(StandardCharsets.UTF_8).length, org.assertj.core.data.Offset.offset(2L));
    assertThat(out.toString().getBytes(StandardCharsets.UTF_8).length)
        .isLessThan((int) SMALL.bytes() + 400);
    assertThat(out).contains("--output-limit 16KiB");
    assertThat(err).isEmpty();
  }

  @Test
  void noCharacterIsTorn() {
    var queue = new OutputQueue(SMALL);
    queue.text(STDOUT, "x" + "𝔸".repeat(20_000));
    queue.finish();
    deliver(queue);
    var back = new String(out.toString().getBytes(StandardCharsets.UTF_8), StandardCharsets.UTF_8);
    assertThat(back).isEqualTo(out.toString());
  }

  @Test
  void displaysCountASixteenthAndAtLeastAKibibyteAndTheLastOnesAreKept() {
    var queue = new OutputQueue(SMALL);
    for (int i = 0; i < 100; i++) {
      queue.shown(text("d" + i), "", false);
    }
    queue.shown(text("y".repeat(1 << 20)), "", false);
    queue.finish();
    deliver(queue);
    assertThat(shown).hasSize(16).startsWith("d0", "d1").endsWith("d98", "d99");
    assertThat(err).contains("… 85 displays left out; --output-limit 16KiB");
  }

  @Test
  void aChartPassesWhereTextOfItsSizeWouldNot() {
    var queue = new OutputQueue(SMALL);
    queue.shown(text("y".repeat(150_000)), "", false);
    queue.finish();
    deliver(queue);
    assertThat(shown).hasSize(1);
    assertThat(err).isEmpty();
  }

  /// A progress bar that is updated for ever costs only its last state.
  @Test
  void updatesAreShownForEverAndTheLatestTakesThePlaceOfOneThatWaits() {
    var queue = new OutputQueue(SMALL);
    queue.shown(text("0%"), "bar", false);
    deliver(queue);
    for (int i = 1; i <= 100_000; i++) {
      queue.shown(text(i + " steps"), "bar", true);
      if (i % 10_000 == 0) {
        deliver(queue);
      }
    }
    assertThat(shown).hasSize(11).endsWith("update bar100000 steps");
    queue.finish();
    deliver(queue);
    assertThat(err).isEmpty();
  }

  @Test
  void anUpdateOfADisplayInTheEndIsKept() {
    var queue = new OutputQueue(SMALL);
    queue.text(STDOUT, "x\n".repeat(10_000));
    queue.shown(text("old"), "late", false);
    queue.shown(text("new"), "late", true);
    queue.finish();
    deliver(queue);
    assertThat(shown).containsExactly("latenew");
  }

  @Test
  void updatesThatGrowAreLeftOutAtTheLimit() {
    var queue = new OutputQueue(SMALL);
    for (int i = 0; i < 100; i++) {
      queue.shown(text("z"), "id " + i, true);
    }
    queue.finish();
    deliver(queue);
    assertThat(shown).hasSize(16);
    assertThat(err).contains("84 displays left out");
  }

  /// A cell that prints a little now and then is not cut early.
  @Test
  void textCountsByItsBytesHoweverOftenItIsDelivered() {
    var queue = new OutputQueue(SMALL);
    for (int i = 0; i < 12_000; i++) {
      queue.text(STDOUT, "x");
      deliver(queue);
    }
    queue.finish();
    deliver(queue);
    assertThat(out).hasToString("x".repeat(12_000));
  }

  /// A notebook stays small however the streams alternate.
  @Test
  void eachChangeOfStreamCounts() {
    var queue = new OutputQueue(SMALL);
    for (int i = 0; i < 10_000; i++) {
      queue.text(STDOUT, "o");
      queue.text(STDERR, "e");
    }
    int items = 0;
    queue.finish();
    while (queue.next() != null) {
      items++;
    }
    assertThat(items).isLessThan(140);
  }

  @Test
  void whoeverBringsMoreThanIsDeliveredWaitsUntilItIs() throws InterruptedException {
    var queue = new OutputQueue(new OutputLimit(1 << 30));
    var rank = bringing(queue, 64);
    while (rank.getState() != Thread.State.WAITING) {
      Thread.onSpinWait();
    }
    long delivered = 0;
    while (rank.isAlive() || delivered < 64L << 16) {
      var item = queue.next();
      if (item != null) {
        assertThat(item.bytes()).isLessThanOrEqualTo((1 << 20) + (1 << 16));
        delivered += item.bytes();
      }
    }
    assertThat(delivered).isEqualTo(64L << 16);
  }

  @Test
  void nobodyWaitsOnceTheCellIsToStopAndMemoryStaysBounded() throws InterruptedException {
    var queue = new OutputQueue(new OutputLimit(16 << 20));
    var rank = bringing(queue, 2000);
    while (rank.getState() != Thread.State.WAITING) {
      Thread.onSpinWait();
    }
    queue.stopBlocking();
    rank.join();
    queue.finish();
    deliver(queue);
    assertThat(out.length()).isLessThan(6 << 20);
    assertThat(out).contains(" lines left out; --output-limit 16MiB");
  }

  private static Thread bringing(OutputQueue queue, int times) {
    var text = ("x".repeat(1023) + "\n").repeat(64);
    return Thread.ofPlatform()
        .start(
            () -> {
              for (int i = 0; i < times; i++) {
                queue.awaitRoom();
                queue.text(STDOUT, text);
              }
            });
  }

  @Test
  void outputAfterTheEndIsShownWithinTheLimit() {
    var queue = new OutputQueue(SMALL);
    queue.finish();
    queue.text(STDOUT, "late\n");
    for (int i = 0; i < 1000; i++) {
      queue.text(STDOUT, "x".repeat(99) + "\n");
    }
    deliver(queue);
    assertThat(out).startsWith("late\n").hasSizeLessThan(13_000);
    assertThat(out).containsOnlyOnce("output after the cell's end is left out");
  }

  @ParameterizedTest
  @CsvSource({
    "4MiB, 4194304, 4MiB",
    "64k, 65536, 64KiB",
    "500KB, 500000, 500000",
    "100000, 100000, 100000",
    "1GiB, 1073741824, 1GiB",
    "2 MB, 2000000, 2000000",
  })
  void sizesAreReadAndWritten(String text, long bytes, String again) {
    assertThat(OutputLimit.parse(text).bytes()).isEqualTo(bytes);
    assertThat(OutputLimit.parse(text)).hasToString(again);
    assertThat(OutputLimit.parse(again).bytes()).isEqualTo(bytes);
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "much", "-1", "1.5MiB", "15KiB", "2GiB", "999999999999G"})
  void aTextThatIsNoSizeIsRefused(String text) {
    assertThatThrownBy(() -> OutputLimit.parse(text))
        .isInstanceOf(BraidException.class)
        .hasMessageContaining("--output-limit must be")
        .hasMessageContaining("the default is 4MiB");
  }

  @Test
  void randomPiecesOfBothStreamsComeInOrderWithinTheLimit() {
    long seed = Long.getLong("braid.seed", new Random().nextLong());
    var random = new Random(seed);
    var queue = new OutputQueue(SMALL);
    for (int i = 0; i < 5000; i++) {
      var text = "%06d%s".formatted(i, random.nextBoolean() ? "\n" : "");
      queue.text(random.nextBoolean() ? STDOUT : STDERR, text);
      if (random.nextInt(10) == 0) {
        deliver(queue);
      }
    }
    queue.finish();
    deliver(queue);
    for (var stream : List.of(out, err)) {
      assertThat(stream.length()).as("seed " + seed).isLessThan(17_000);
      var numbers =
          java.util.regex.Pattern.compile("[0-9]{6}")
              .matcher(stream)
              .results()
              .map(found -> Integer.parseInt(found.group()))
              .toList();
      assertThat(numbers).as("seed " + seed).isSorted();
    }
  }
}
