package braid.launcher.kernel;

import braid.launcher.kernel.channels.Channel;
import braid.launcher.kernel.channels.Channels;
import braid.launcher.kernel.channels.Message;
import com.google.gson.JsonObject;
import java.util.Optional;

/// Publishes busy and idle for every request. Some requests are answered while a cell runs, and
/// front ends show the last status they received; so after the idle of such an answer the cell's
/// busy is published again.
final class KernelStatus {
  private final Channels channels;
  private Optional<Message> cell = Optional.empty();

  KernelStatus(Channels channels) {
    this.channels = channels;
  }

  synchronized void starting() {
    publish(Optional.empty(), "starting");
  }

  synchronized void cellBegins(Message request) {
    cell = Optional.of(request);
    publish(cell, "busy");
  }

  synchronized void cellEnds(Message request) {
    cell = Optional.empty();
    publish(Optional.of(request), "idle");
  }

  synchronized void busy(Message request) {
    publish(Optional.of(request), "busy");
  }

  synchronized void idle(Message request) {
    publish(Optional.of(request), "idle");
    if (cell.isPresent()) {
      publish(cell, "busy");
    }
  }

  private void publish(Optional<Message> parent, String state) {
    var content = new JsonObject();
    content.addProperty("execution_state", state);
    channels.send(Channel.IOPUB, Message.publication(parent, "status", content));
  }
}
