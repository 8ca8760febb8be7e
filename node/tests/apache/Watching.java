import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.CompletableFuture;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.AsyncCallback.DataCallback;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/**
 * A client that prints what it is told: of /value by watches that tell once and are left again after each event, of what
 * is below /list by one that stays. To each line of its input it answers when a sync has passed through the ensemble.
 */
final class Watching implements Watcher, DataCallback {
    private final ZooKeeper zooKeeper;

    private Watching(ZooKeeper zooKeeper) {
        this.zooKeeper = zooKeeper;
    }

    private static void say(String line) {
        System.out.println(line);
    }

    private void read() {
        zooKeeper.getData("/value", this, this, null);
    }

    @Override
    public void process(WatchedEvent event) {
        // A watch hears of its connection, too, and outlives it.
        if (event.getType() != EventType.None) {
            say("changed");
            read();
        }
    }

    @Override
    public void processResult(int code, String path, Object context, byte[] data, Stat stat) {
        switch (Code.get(code)) {
            case OK -> say("value " + stat.getVersion());
            case CONNECTIONLOSS -> read();
            default -> say("failed " + Code.get(code));
        }
    }

    public static void main(String[] words) throws Exception {
        ZooKeeper zooKeeper = new ZooKeeper(words[0], 10_000, event -> say("state " + event.getState()));
        Watcher list = event -> {
            if (event.getType() != EventType.None) {
                say(event.getType() + " " + event.getPath());
            }
        };
        zooKeeper.addWatch("/list", list, AddWatchMode.PERSISTENT_RECURSIVE);
        new Watching(zooKeeper).read();
        var input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            Integer code;
            do {
                // It finds another member by itself.
                var done = new CompletableFuture<Integer>();
                zooKeeper.sync("/", (result, path, context) -> done.complete(result), null);
                code = done.get();
            } while (code == Code.CONNECTIONLOSS.intValue());
            say(line);
        }
        zooKeeper.close();
    }
}
