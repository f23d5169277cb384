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
  static Lane communication(Schedule.Builder builder, String name, ContextParallel how) {
    return builder.add(
        new Lane(name, Lane.Role.COMMUNICATION, false, how.transport(), how.workers(), 0));
  }

  /// Adds the lanes that compute attention.
  static List<Lane> compute(Schedule.Builder builder, ContextParallel how) {
    return IntStream.range(0, how.streams())
        .mapToObj(
            lane ->
                builder.add(
                    new Lane(
                        "attend-" + lane,
                        Lane.Role.COMPUTE,
                        true,
                        Transport.COPY_ENGINE,
                        0,
                        how.workers())))
        .toList();
  }
}
