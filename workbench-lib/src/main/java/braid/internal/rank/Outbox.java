package braid.internal.rank;

import braid.model.MimeBundle;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/// Receives a rank's results for display. A session installs one that sends them to its front.
public interface Outbox {
  /// Outbox of this thread, and of those it starts, in the front, where threads are no ranks.
  InheritableThreadLocal<@Nullable Outbox> OF_THREAD = new InheritableThreadLocal<>();

  /// Sends data to the front, such as a profile, without showing it.
  void publish(MimeBundle bundle);

  /// Shows a bundle; a `displayId` that is not empty names it for [#update].
  void display(MimeBundle bundle, String displayId);

  /// Replaces the bundle that was shown under the name.
  void update(MimeBundle bundle, String displayId);

  /// Shows a line beside the results, which is not stored with them.
  default void note(String line) {
    display(MimeBundle.text(line).asProgress(), "note-" + UUID.randomUUID());
  }

  /// Outbox of a rank without a session: prints bundles as text and ignores data.
  Outbox CONSOLE =
      new Outbox() {
        @Override
        public void publish(MimeBundle bundle) {}

        @Override
        public void display(MimeBundle bundle, String displayId) {
          System.out.println(bundle.text());
        }

        @Override
        public void update(MimeBundle bundle, String displayId) {
          System.out.println(bundle.text());
        }
      };
}
