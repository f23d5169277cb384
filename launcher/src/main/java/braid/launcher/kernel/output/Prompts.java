package braid.launcher.kernel.output;

import braid.launcher.kernel.channels.Channel;
import braid.launcher.kernel.channels.Channels;
import braid.launcher.kernel.channels.MalformedMessage;
import braid.launcher.kernel.channels.Message;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/// Reads lines from the user of the running cell. One prompt is open at a time; it ends with an
/// answer, or when the cell is interrupted or the kernel ends.
public final class Prompts {
  private record Prompt(Message request, CompletableFuture<Answer> answer) {}

  private sealed interface Answer {
    record Line(String text) implements Answer {}

    record None(String reason) implements Answer {}
  }

  private final Channels channels;
  private @Nullable Prompt open;

  public Prompts(Channels channels) {
    this.channels = channels;
  }

  /// @throws IOException if the prompt was not answered, with the reason
  String ask(Message cell, String prompt) throws IOException {
    var content = new JsonObject();
    content.addProperty("prompt", prompt);
    content.addProperty("password", false);
    var request = Message.reply(cell, "input_request", content);
    var pending = new Prompt(request, new CompletableFuture<>());
    synchronized (this) {
      if (open != null) {
        throw new IOException("only one line can be read at a time");
      }
      open = pending;
    }
    try {
      var _ =
          channels
              .deliver(Channel.STDIN, request)
              .thenAccept(
                  sent -> {
                    if (!sent) {
                      refuse(pending, "the client that ran this cell has no stdin channel");
                    }
                  });
      return switch (pending.answer.join()) {
        case Answer.Line line -> line.text;
        case Answer.None none -> throw new IOException(none.reason);
      };
    } finally {
      synchronized (this) {
        open = null;
      }
    }
  }

  /// Receives a client's answer. Clients may omit the parent; an answer to another prompt is
  /// ignored.
  public synchronized void answered(Message reply) {
    if (open == null || !reply.type().equals("input_reply")) {
      return;
    }
    var parent = reply.parent().get("msg_id");
    if (parent != null && !parent.equals(open.request.header().get("msg_id"))) {
      return;
    }
    try {
      open.answer.complete(new Answer.Line(reply.text("value")));
    } catch (MalformedMessage e) {
      refuse(open, String.valueOf(e.getMessage()));
    }
  }

  /// Ends the open prompt, if any, without an answer.
  public synchronized void release(String reason) {
    if (open != null) {
      refuse(open, reason);
    }
  }

  private static void refuse(Prompt pending, String reason) {
    pending.answer.complete(new Answer.None(reason));
  }
}
