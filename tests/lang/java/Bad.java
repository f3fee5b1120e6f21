public class Bad {
    public static void main(String[] args) {
        int x = "text";
    }
}
