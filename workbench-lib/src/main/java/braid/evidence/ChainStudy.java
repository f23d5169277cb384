package braid.evidence;

import braid.internal.report.HtmlTable;
import braid.internal.report.TableTypes;
import braid.internal.report.value.Caveats;
import braid.model.BraidException;
import braid.model.Displayable;
import braid.model.MimeBundle;
import braid.model.Tuning;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;
import tech.tablesaw.api.DoubleColumn;
import tech.tablesaw.api.StringColumn;
import tech.tablesaw.api.Table;

/// Tunings found for the pipelines of a chain, and their measurements: one study of the whole
/// chain's time per tuned pipeline.
///
/// @param overlaps overlaps of all pipelines of the chain, in order
/// @param note reason why no pipeline was tuned; empty if any was
public record ChainStudy(List<Tuning> overlaps, List<Tuned> tuned, Optional<String> note)
    implements Displayable {
  private static final double NANOS_PER_MILLI = 1e6;

  /// Result for one pipeline.
  ///
  /// @param pipeline number of the pipeline in the chain, from 1
  /// @param study study of the chain with each tuning of this pipeline, beside the chain with this
  ///   pipeline unfused
  public record Tuned(int pipeline, String problem, Study<? extends Tuning> study) {}

  public ChainStudy {
    overlaps = List.copyOf(overlaps);
    tuned = List.copyOf(tuned);
    if (tuned.isEmpty() && note.isEmpty()) {
      throw new BraidException("a chain's study needs 1 or more tuned pipelines but has none");
    }
  }

  /// Creates a study of a chain with tuned pipelines.
  public ChainStudy(List<Tuning> overlaps, List<Tuned> tuned) {
    this(overlaps, tuned, Optional.empty());
  }

  /// Returns one row per tuned pipeline.
  public Table table() {
    TableTypes.ready();
    var pipeline = StringColumn.create("pipeline");
    var problem = StringColumn.create("problem");
    var best = StringColumn.create("tuning");
    var time = DoubleColumn.create("chain, median ms");
    var unfused = DoubleColumn.create("with it unfused, median ms");
    for (var each : tuned) {
      pipeline.append(Integer.toString(each.pipeline()));
      problem.append(each.problem());
      boolean count = each.study().timesCount();
      best.append(count ? each.study().best().toString() : Caveats.SHARED);
      // Without times that count a pipeline keeps its tuning, the reference.
      double nanos = count ? each.study().bestMedianNanos() : each.study().unfusedMedianNanos();
      time.append(nanos / NANOS_PER_MILLI);
      unfused.append(each.study().unfusedMedianNanos() / NANOS_PER_MILLI);
    }
    return Table.create("chain", pipeline, problem, best, time, unfused);
  }

  /// Returns one line per tuned pipeline, or the reason why there is none.
  public String headline() {
    return note.orElseGet(
        () ->
            tuned.stream()
                .map(
                    each ->
                        String.format(
                            Locale.ROOT,
                            "pipeline %d: %s",
                            each.pipeline(),
                            each.study().headline()))
                .collect(Collectors.joining("\n")));
  }

  @Override
  public MimeBundle display() {
    if (note.isPresent()) {
      return MimeBundle.text(note.get());
    }
    var table = table();
    return MimeBundle.text(headline() + "\n" + HtmlTable.text(table, table.rowCount()))
        .with(
            MimeBundle.HTML,
            "%s<pre>%s</pre>"
                .formatted(HtmlTable.html(table, table.rowCount()), HtmlTable.escape(headline())));
  }

  @Override
  public String toString() {
    return headline();
  }
}
