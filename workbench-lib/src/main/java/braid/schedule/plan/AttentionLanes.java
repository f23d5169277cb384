package braid.schedule.plan;

import braid.model.ContextParallel;
import braid.model.Transport;
import braid.schedule.Lane;
import braid.schedule.Schedule;
import java.util.List;
import java.util.stream.IntStream;

/// The lanes of attention and of its gradients.
final class AttentionLanes {
  private AttentionLanes() {}

  /// Adds a lane that copies between ranks.
  static Lane communication(Schedule.Builder builder, String name, ContextParallel tuning) {
    return builder.add(
        new Lane(name, Lane.Role.COMMUNICATION, false, tuning.transport(), tuning.workers(), 0));
  }

  /// Adds the lanes that compute attention.
  static List<Lane> compute(Schedule.Builder builder, ContextParallel tuning) {
    return IntStream.range(0, tuning.streams())
        .mapToObj(
            lane ->
                builder.add(
                    new Lane(
                        "attend-" + lane,
                        Lane.Role.COMPUTE,
                        true,
                        Transport.COPY_ENGINE,
                        0,
                        tuning.workers())))
        .toList();
  }
}
