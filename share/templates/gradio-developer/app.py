import gradio

gradio.Interface(lambda name: f"Hello {name}", "text", "text").launch()
