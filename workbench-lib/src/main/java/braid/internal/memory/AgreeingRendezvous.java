package braid.internal.memory;

import braid.internal.resource.Rendezvous;
import braid.model.Place;
import java.util.ArrayList;
import java.util.List;

/// A rendezvous in whose exchanges the members also hear what each of them believes the call to be,
/// so that a difference is named rank by rank and costs no meeting of its own.
record AgreeingRendezvous(Rendezvous rendezvous, Members members, Call call) implements Rendezvous {
  private static final char SEPARATOR = '\0';

  @Override
  public Place place() {
    return rendezvous.place();
  }

  @Override
  public List<Integer> ranks() {
    return rendezvous.ranks();
  }

  @Override
  public String unique() {
    return rendezvous.unique();
  }

  /// The members are at the same call if its name is the same; what else they should agree about is
  /// in its value, so the label is not looked at.
  @Override
  public List<String> exchange(String label, String value) {
    var said = new ArrayList<String>();
    var values = new ArrayList<String>();
    for (var each : rendezvous.exchange(call.name(), call.value() + SEPARATOR + value)) {
      int end = each.indexOf(SEPARATOR);
      said.add(each.substring(0, end));
      values.add(each.substring(end + 1));
    }
    members.requireSame(call.name(), said);
    return values;
  }
}
