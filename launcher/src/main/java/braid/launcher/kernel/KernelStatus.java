package braid.launcher.kernel;

import braid.launcher.kernel.channels.Channels;
import braid.launcher.kernel.channels.Channels.Channel;
import braid.launcher.kernel.channels.Message;
import com.google.gson.JsonObject;
import java.util.Optional;

/// Says busy and idle for every request. Some requests are answered while a cell runs, and front
/// ends show whatever they heard last; so after such an answer's idle the cell's busy is said
/// again.
final class KernelStatus {
  private final Channels channels;
  private Optional<Message> cell = Optional.empty();

  KernelStatus(Channels channels) {
    this.channels = channels;
  }

  synchronized void starting() {
    say(Optional.empty(), "starting");
  }

  synchronized void cellBegins(Message request) {
    cell = Optional.of(request);
    say(cell, "busy");
  }

  synchronized void cellEnds(Message request) {
    cell = Optional.empty();
    say(Optional.of(request), "idle");
  }

  synchronized void busy(Message request) {
    say(Optional.of(request), "busy");
  }

  synchronized void idle(Message request) {
    say(Optional.of(request), "idle");
    if (cell.isPresent()) {
      say(cell, "busy");
    }
  }

  private void say(Optional<Message> parent, String state) {
    var content = new JsonObject();
    content.addProperty("execution_state", state);
    channels.send(Channel.IOPUB, Message.publication(parent, "status", content));
  }
}
