package braid.launcher.output;

import braid.launcher.ranks.RankEvent.Channel;
import braid.model.MimeBundle;

/// One undelivered piece of a cell's output.
sealed interface OutputItem {
  /// Approximate bytes in memory.
  long bytes();

  /// Text of one stream.
  final class Text implements OutputItem {
    final Channel channel;
    final StringBuilder text = new StringBuilder();
    long bytes;

    Text(Channel channel) {
      this.channel = channel;
    }

    Text add(CharSequence more, int from, int to, long moreBytes) {
      text.append(more, from, to);
      bytes += moreBytes;
      return this;
    }

    Channel channel() {
      return channel;
    }

    String text() {
      return text.toString();
    }

    @Override
    public long bytes() {
      return bytes;
    }
  }

  /// A display or an update of one. A later update replaces a waiting one.
  final class Shown implements OutputItem {
    final String id;
    final boolean update;
    MimeBundle bundle;

    Shown(MimeBundle bundle, String id, boolean update) {
      this.bundle = bundle;
      this.id = id;
      this.update = update;
    }

    MimeBundle bundle() {
      return bundle;
    }

    String id() {
      return id;
    }

    boolean isUpdate() {
      return update;
    }

    @Override
    public long bytes() {
      return OutputItem.bytes(bundle);
    }
  }

  /// Returns the length in UTF-8; each half of a surrogate pair counts 2.
  static long utf8(CharSequence text, int from, int to) {
    long bytes = (long) to - from;
    for (int i = from; i < to; i++) {
      char c = text.charAt(i);
      if (c >= 0x80) {
        bytes += c < 0x800 || Character.isSurrogate(c) ? 1 : 2;
      }
    }
    return bytes;
  }

  static long bytes(MimeBundle bundle) {
    return bundle.data().values().stream().mapToLong(v -> utf8(v, 0, v.length())).sum();
  }
}
