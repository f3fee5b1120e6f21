return { greeting = function() return "from the other file: Größe 漢字" end }
