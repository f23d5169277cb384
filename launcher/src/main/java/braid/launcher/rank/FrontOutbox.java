package braid.launcher.rank;

import braid.internal.rank.Outbox;
import braid.launcher.wire.Connection;
import braid.launcher.wire.FromRank;
import braid.model.MimeBundle;
import java.io.IOException;
import java.io.UncheckedIOException;

/// Sends the library's displays and publications to the front, on the connection that also carries
/// the answers, so that both arrive in order.
record FrontOutbox(Connection front) implements Outbox {
  @Override
  public void publish(MimeBundle bundle) {
    send(new FromRank.Published(bundle));
  }

  @Override
  public void display(MimeBundle bundle, String displayId) {
    send(new FromRank.Display(bundle, displayId, false));
  }

  @Override
  public void update(MimeBundle bundle, String displayId) {
    send(new FromRank.Display(bundle, displayId, true));
  }

  private void send(FromRank message) {
    try {
      front.send(message);
    } catch (IOException e) {
      throw new UncheckedIOException("the front cannot be reached", e);
    }
  }
}
