package braid;

import braid.evidence.Study;
import braid.internal.context.RankContext;
import braid.internal.json.RecordJson;
import braid.model.BraidException;
import braid.natives.WholeFile;
import com.google.gson.JsonElement;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Clock;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.SequencedMap;

/// Times that a search has measured, in a file beside the decisions. A search that was interrupted,
/// or lost a rank, leaves them there, and the next one of the same tunings goes on with them. Rank
/// 0 reads and writes the file.
///
/// @param file their file; rank 0's counts
/// @param conditions problem, machine, versions and everything else that must be the same, as
///   columns
record SearchSamples(ProcessGroup group, Path file, SequencedMap<String, String> conditions) {
  /// Older samples are not used: the machine may have changed since.
  static final Duration LONGEST = Duration.ofDays(1);

  private static final int ROOT = 0;
  private static final String FORMAT = "braid.samples/1";
  private static final String DOCUMENT = "samples";
  private static final RecordJson JSON = new RecordJson();

  /// Tunings that were measured together, in rounds.
  ///
  /// @param measuredAt time when the last round ended
  /// @param spentNanos time that building and measuring took
  record Batch(Instant measuredAt, long spentNanos, Study<?> study) {
    int samples() {
      return study.trials().size() * study.repeats();
    }
  }

  private record KeptBatch(String measuredAt, long spentNanos, JsonElement study) {}

  private record Kept(SequencedMap<String, String> conditions, List<KeptBatch> batches) {}

  /// Returns the samples of an earlier search that did not end, and shows a line on them.
  List<Batch> read() {
    var current = isRoot() ? current() : List.<Batch>of();
    long count = group.broadcast(current.size(), ROOT);
    var batches = new ArrayList<Batch>();
    // Each by itself: the ranks' store limits the size of a value.
    for (int i = 0; i < count; i++) {
      var shared = group.broadcast(isRoot() ? write(current.subList(i, i + 1)) : "", ROOT);
      batches.addAll(batches(RecordJson.document(DOCUMENT, FORMAT, shared)));
    }
    if (!batches.isEmpty()) {
      note(
          "the search goes on with %d samples of an earlier one that did not end"
              .formatted(batches.stream().mapToInt(Batch::samples).sum()));
    }
    return batches;
  }

  /// Returns the batches of the file that are of these conditions and not too old.
  private List<Batch> current() {
    try {
      var document = RecordJson.document(DOCUMENT, FORMAT, Files.readString(file));
      if (!JSON.read(DOCUMENT, document, Kept.class).conditions().equals(conditions)) {
        return List.of();
      }
      var oldest = Clock.systemUTC().instant().minus(LONGEST);
      return batches(document).stream()
          .filter(batch -> batch.measuredAt().isAfter(oldest))
          .toList();
    } catch (NoSuchFileException e) {
      return List.of();
    } catch (BraidException | IOException e) {
      note(
          "the samples %s of an earlier search cannot be read, so the search begins anew: %s"
              .formatted(file, e.getMessage()));
      return List.of();
    }
  }

  /// Keeps the samples so far, in place of earlier ones.
  void keep(List<Batch> batches) {
    if (isRoot()) {
      try {
        Files.createDirectories(file.toAbsolutePath().getParent());
        WholeFile.write(file, write(batches));
      } catch (IOException e) {
        note(
            "the samples of the search must be kept in %s but cannot be written (%s); set BRAID_CACHE to another folder"
                .formatted(file, e.getClass().getSimpleName()));
      }
    }
  }

  /// Deletes the samples: the search has ended.
  void forget() {
    if (isRoot()) {
      try {
        Files.deleteIfExists(file);
      } catch (IOException e) {
        note(
            "the samples %s of a search that has ended cannot be deleted (%s); delete the file"
                .formatted(file, e.getClass().getSimpleName()));
      }
    }
  }

  private String write(List<Batch> batches) {
    var kept = new ArrayList<KeptBatch>();
    for (var batch : batches) {
      kept.add(
          new KeptBatch(
              batch.measuredAt().toString(),
              batch.spentNanos(),
              RecordJson.parse(DOCUMENT, batch.study().toJson())));
    }
    return JSON.write(FORMAT, new Kept(conditions, kept)).toString();
  }

  private static List<Batch> batches(JsonElement document) {
    var batches = new ArrayList<Batch>();
    for (var kept : JSON.read(DOCUMENT, document, Kept.class).batches()) {
      try {
        batches.add(
            new Batch(
                Instant.parse(kept.measuredAt()),
                kept.spentNanos(),
                Study.fromJson(kept.study().toString())));
      } catch (DateTimeException e) {
        throw new BraidException(
            "samples.measuredAt must be a time but was %s; for example 2026-11-26T10:00:00Z"
                .formatted(kept.measuredAt()),
            e);
      }
    }
    return batches;
  }

  private boolean isRoot() {
    return group.rank() == ROOT;
  }

  private void note(String line) {
    if (isRoot()) {
      RankContext.current().outbox().note(line);
    }
  }
}
