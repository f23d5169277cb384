package braid.launcher.kernel.output;

import braid.launcher.cell.CellOutput;
import braid.launcher.cell.DisplayContent;
import braid.launcher.kernel.channels.Channel;
import braid.launcher.kernel.channels.Channels;
import braid.launcher.kernel.channels.Message;
import braid.model.MimeBundle;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.util.Optional;
import java.util.concurrent.ScheduledExecutorService;

/// Publishes a cell's output. A publisher belongs to its cell forever: output that a rank prints
/// after the cell ended still goes there. Output of ranks blocks while clients are slow.
public final class CellPublisher implements CellOutput {
  private final Channels channels;
  private final Prompts prompts;
  private final Message cell;
  private final boolean silent;
  private final boolean stdinAllowed;
  private final CoalescedText text;

  public CellPublisher(
      Channels channels,
      Prompts prompts,
      ScheduledExecutorService timer,
      Message cell,
      boolean silent,
      boolean stdinAllowed) {
    this.channels = channels;
    this.prompts = prompts;
    this.cell = cell;
    this.silent = silent;
    this.stdinAllowed = stdinAllowed;
    this.text = new CoalescedText(timer, this::publishText);
  }

  @Override
  public void stdout(String more) {
    channels.awaitRoom();
    text.append("stdout", more);
  }

  @Override
  public void stderr(String more) {
    channels.awaitRoom();
    note(more);
  }

  /// Writes the kernel's own text to stderr, without blocking.
  public void note(String more) {
    text.append("stderr", more);
  }

  @Override
  public void display(MimeBundle bundle, String displayId) {
    channels.awaitRoom();
    show("display_data", bundle, displayId);
  }

  @Override
  public void update(MimeBundle bundle, String displayId) {
    channels.awaitRoom();
    show("update_display_data", bundle, displayId);
  }

  @Override
  public String readLine(String prompt) throws IOException {
    if (!stdinAllowed) {
      throw new IOException(
          "a line was read from System.in, but this client provides no input (allow_stdin is"
              + " false); run the cell in a notebook or console");
    }
    text.flush();
    return prompts.ask(cell, prompt);
  }

  public void input(String code, int executionCount) {
    var content = new JsonObject();
    content.addProperty("code", code);
    content.addProperty("execution_count", executionCount);
    publish("execute_input", content);
  }

  public void result(MimeBundle bundle, int executionCount) {
    var content = content(bundle);
    content.addProperty("execution_count", executionCount);
    publish("execute_result", content);
  }

  public void error(JsonObject error) {
    var content = error.deepCopy();
    content.remove("status");
    publish("error", content);
  }

  public void flush() {
    text.flush();
  }

  private void show(String type, MimeBundle bundle, String displayId) {
    var content = content(bundle);
    var transients = new JsonObject();
    if (!displayId.isEmpty()) {
      transients.addProperty("display_id", displayId);
    }
    content.add("transient", transients);
    publish(type, content);
  }

  private JsonObject content(MimeBundle bundle) {
    var display = DisplayContent.of(bundle);
    for (var problem : display.problems()) {
      note(problem + "\n");
    }
    var content = new JsonObject();
    content.add("data", display.data());
    content.add("metadata", new JsonObject());
    return content;
  }

  /// Publishes a message after the text that was printed before it.
  private void publish(String type, JsonObject content) {
    text.flush();
    send(type, content);
  }

  private void publishText(String stream, String more) {
    var content = new JsonObject();
    content.addProperty("name", stream);
    content.addProperty("text", more);
    send("stream", content);
  }

  private void send(String type, JsonObject content) {
    if (!silent) {
      channels.send(Channel.IOPUB, Message.publication(Optional.of(cell), type, content));
    }
  }
}
