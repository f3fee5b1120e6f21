def greeting = "from the other file: Größe 漢字"
