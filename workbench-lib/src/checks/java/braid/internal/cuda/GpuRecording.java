package braid.internal.cuda;

import braid.model.Activity;
import braid.model.Span;
import java.util.ArrayList;
import java.util.List;

/// Everything that this rank's GPU ran while a piece of work ran.
///
/// @param spans spans of all streams
/// @param unowned activities that belong to no span
/// @param dropped number of activities that CUPTI lost
public record GpuRecording(List<Span> spans, List<Activity> unowned, long dropped) {
  public GpuRecording {
    spans = List.copyOf(spans);
    unowned = List.copyOf(unowned);
  }

  /// Records the work, which must be complete when `work` returns. All earlier work is done.
  public static GpuRecording during(CudaBackend backend, Runnable work) {
    var recorder = backend.recorder();
    recorder.begin(System.nanoTime());
    try {
      work.run();
    } catch (RuntimeException | Error e) {
      recorder.close();
      throw e;
    }
    var result = recorder.end();
    var spans = new ArrayList<Span>();
    result.spans().values().forEach(spans::addAll);
    return new GpuRecording(spans, result.unowned(), recorder.dropped());
  }
}
