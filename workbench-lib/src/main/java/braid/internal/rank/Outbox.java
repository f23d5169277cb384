package braid.internal.rank;

import braid.model.MimeBundle;
import org.jspecify.annotations.Nullable;

/// Where a rank's results go to be seen. A session installs one that sends them to its front.
public interface Outbox {
  /// What this thread, and those it starts, show things by where they are no rank: in the front.
  InheritableThreadLocal<@Nullable Outbox> OF_THREAD = new InheritableThreadLocal<>();

  /// Data for the front, such as a profile; not shown by itself.
  void publish(MimeBundle bundle);

  /// Shows something; a `displayId` that is not empty names it for [#update].
  void display(MimeBundle bundle, String displayId);

  /// Shows something in the place of what was shown under that name.
  void update(MimeBundle bundle, String displayId);

  /// For a rank without a session: prints what is to be shown as text. Data has no reader there.
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
